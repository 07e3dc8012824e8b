"""What is shown of secrets: that they are there."""

from __future__ import annotations

import re
from typing import Any

HIDDEN = "***"
_SECRET_NAME = re.compile(
    r"(?:^|[-_.])(?:pass(?:word|wd|phrase)?|pwd|secret|token|auth|authorization|authentication|cookie|credential|signature|sig"
    r"|(?:api|access|private)[-_]?key)s?(?:$|[-_.])|^key$|-key$",
    re.IGNORECASE,
)
# Each begins with a mark that its own middle cannot hold, so that a long text costs linear time.
_USER_INFO = re.compile(r"(?P<start>://)(?P<info>[^/?#\s]*)@")
_PARAMETER = re.compile(r"(?P<name>[?&;](?P<key>[^?&;=#\s]+)=)(?P<value>[^?&;#\s]*)")


def without_password(text: str) -> str:
    """The URLs in a text without their passwords, be those before the host or in a parameter."""
    text = _USER_INFO.sub(lambda found: f"{found['start']}{_user(found['info'])}@", text)
    return _PARAMETER.sub(lambda found: found["name"] + (HIDDEN if _is_secret(found["key"]) else found["value"]), text)


def redacted(value: Any, name: str = "") -> Any:
    """A payload for people to read: values of cookies and of fields with a secret's name are hidden, passwords too."""
    match value:
        case dict():
            return {
                key: HIDDEN if name == "cookies" and inner else redacted(inner, str(key))
                for key, inner in value.items()
            }
        case list() | tuple():
            return [redacted(inner, name) for inner in value]
        case str():
            return HIDDEN if value and _is_secret(name) else without_password(value)
    return value


def _user(info: str) -> str:
    user, colon, _ = info.partition(":")
    return f"{user}:{HIDDEN}" if colon else user


def _is_secret(name: str) -> bool:
    return bool(_SECRET_NAME.search(name))
