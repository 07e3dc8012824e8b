"""What of a job's spec may be shown. Headers, cookies and proxies are write-only: that they are set, never to what."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from silkline.model.spec import SECRET_FIELDS

HIDDEN = "***"


def shown_spec(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _hidden(value) if name in SECRET_FIELDS else value for name, value in payload.items()}


def _hidden(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict.fromkeys(value, HIDDEN)
    return HIDDEN if value else value


def secrets_of(payload: Mapping[str, Any]) -> list[str]:
    """The secrets themselves, to be taken out of texts."""
    found: list[str] = []
    for name in SECRET_FIELDS & payload.keys():
        value = payload[name]
        found += [str(each) for each in value.values()] if isinstance(value, Mapping) else [str(value or "")]
    # A proxy's password may turn up without its URL, the token of an Authorization header without its kind.
    found += [part for each in found for part in re.split(r"[\s:/@]+", each) if len(part) >= 8]
    return sorted({each for each in found if len(each) >= 4}, key=len, reverse=True)


def without_secrets(text: str, secrets: list[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return text
