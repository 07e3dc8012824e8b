"""Hides secrets in specs, metadata, URLs, messages and log lines. All that users and programs read passes through here.

Addresses in settings, such as the URL of the database, have rules of their own: see `model.secret_url`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from silkline.model.secret_url import HIDDEN, is_secret_name

# The fields of a spec whose values nobody may read again, not even in an error message.
SECRET_FIELDS: Final = frozenset({"headers", "cookies", "proxy"})
# Each pattern begins with a mark that its middle cannot contain, so that a long text takes linear time.
_USER_INFO: Final = re.compile(r"(?P<start>://)(?P<info>[^/?#\s]*)@")
_PARAMETER: Final = re.compile(r"(?P<name>[?&;](?P<key>[^?&;=#\s]+)=)(?P<value>[^?&;#\s]*)")


def shown_spec(payload: Mapping[str, Any]) -> dict[str, Any]:
    """A spec without secrets. Of headers, cookies and proxies only the names are shown."""
    return {name: _hidden(value) if name in SECRET_FIELDS else redacted(value, name) for name, value in payload.items()}


def _hidden(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict.fromkeys(value, HIDDEN)
    return HIDDEN if value else value


def redacted(value: Any, name: str = "") -> Any:
    """A JSON value without secrets: hides fields with a secret's name, the values of cookies, and passwords in URLs."""
    match value:
        case dict():
            return {
                key: HIDDEN if name == "cookies" and inner else redacted(inner, str(key))
                for key, inner in value.items()
            }
        case list() | tuple():
            # A spec may have 100,000 URLs, and most of them have nothing to hide: 9 ms of CPU instead of 86 ms for all.
            secret = is_secret_name(name)
            return [
                inner if type(inner) is str and not secret and _is_harmless(inner) else redacted(inner, name)
                for inner in value
            ]
        case str():
            return HIDDEN if value and is_secret_name(name) else without_password(value)
    return value


def _is_harmless(text: str) -> bool:
    """Whether a text can contain neither a user name nor a parameter."""
    return "@" not in text and "=" not in text


def without_password(text: str) -> str:
    """A text without the passwords of the URLs in it, whether before the host or in a parameter."""
    if _is_harmless(text):
        return text
    text = _USER_INFO.sub(lambda found: f"{found['start']}{_user(found['info'])}@", text)
    return _PARAMETER.sub(
        lambda found: found["name"] + (HIDDEN if is_secret_name(found["key"]) else found["value"]), text
    )


def _user(info: str) -> str:
    user, colon, _ = info.partition(":")
    return f"{user}:{HIDDEN}" if colon else user


def secrets_of(payload: Mapping[str, Any]) -> list[str]:
    """The secrets of a spec, the longest first, for `without_secrets`."""
    found: list[str] = []
    if SECRET_FIELDS.isdisjoint(payload):
        return found
    for name in SECRET_FIELDS & payload.keys():
        value = payload[name]
        found += [str(each) for each in value.values()] if isinstance(value, Mapping) else [str(value or "")]
    # A text may contain the password of a proxy without its URL, or the token of an Authorization header alone.
    found += [part for each in found for part in re.split(r"[\s:/@]+", each) if len(part) >= 8]
    return sorted({each for each in found if len(each) >= 4}, key=len, reverse=True)


def without_secrets(text: str, secrets: list[str]) -> str:
    """A text, such as an error message, without the secrets of a spec."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return text


def cleaned(value: Any, clean: Callable[[str], str]) -> Any:
    """A JSON value with `clean` applied to each text in it."""
    match value:
        case str():
            return clean(value)
        case dict():
            return {clean(str(name)): cleaned(inner, clean) for name, inner in value.items()}
        case list() | tuple():
            return [cleaned(inner, clean) for inner in value]
    return value
