"""Hides secrets in what is shown."""

from __future__ import annotations

import re
from typing import Any

from silkline.model.secret_url import HIDDEN, is_secret_name

# Each pattern starts with a character that its middle part cannot contain, so matching takes linear time.
_USER_INFO = re.compile(r"(?P<start>://)(?P<info>[^/?#\s]*)@")
_PARAMETER = re.compile(r"(?P<name>[?&;](?P<key>[^?&;=#\s]+)=)(?P<value>[^?&;#\s]*)")


def without_password(text: str) -> str:
    """Hide the passwords of the URLs in a text, before the host and in parameters."""
    text = _USER_INFO.sub(lambda found: f"{found['start']}{_user(found['info'])}@", text)
    return _PARAMETER.sub(
        lambda found: found["name"] + (HIDDEN if is_secret_name(found["key"]) else found["value"]), text
    )


def redacted(value: Any, name: str = "") -> Any:
    """Hide the values of cookies, of fields with a secret name, and passwords in URLs, so that people can read it."""
    match value:
        case dict():
            return {
                key: HIDDEN if name == "cookies" and inner else redacted(inner, str(key))
                for key, inner in value.items()
            }
        case list() | tuple():
            return [redacted(inner, name) for inner in value]
        case str():
            return HIDDEN if value and is_secret_name(name) else without_password(value)
    return value


def _user(info: str) -> str:
    user, colon, _ = info.partition(":")
    return f"{user}:{HIDDEN}" if colon else user
