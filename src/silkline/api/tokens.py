"""Who is calling: bearer tokens with scopes, and the session cookie that a browser gets for one.

A token is `silk_ID_SECRET`. The database knows the id and the SHA-256 of the secret; comparisons take the same time
whatever is presented. The cookie holds no secret: an id and a time, signed with the stored hash, so that it ends with
the token.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie

from silkline.api.credentials import digest
from silkline.api.problems import Problem
from silkline.store import tokens
from silkline.store.database import Database

SCOPES = ("read", "write", "admin")
OPERATOR = "operator"
COOKIE = "silkline_session"
SESSION_SECONDS = 7 * 86_400
_TOKEN = re.compile(r"silk_([0-9a-f]{16})_([\w-]{43})", re.ASCII)
_NOBODY = digest(secrets.token_urlsafe(32))


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is calling, and what for they may."""

    id: str
    scope: str

    def may(self, scope: str) -> bool:
        return SCOPES.index(self.scope) >= SCOPES.index(scope)


ANYBODY = Caller("anybody", "admin")


class Doorkeeper:
    """Knows who is who. `open`: nobody needs a token, as on a laptop's loopback."""

    def __init__(self, database: Database, operator_token: str, *, open: bool) -> None:
        self._database = database
        self._operator = digest(operator_token) if operator_token else ""
        self.open = open

    def caller(self, headers: Mapping[str, str]) -> Caller | None:
        """Who sent these headers; None: somebody without a token. A wrong token is never let pass."""
        authorization = headers.get("authorization")
        if authorization is not None:
            kind, _, token = authorization.partition(" ")
            caller = self.by_token(token.strip()) if kind.lower() == "bearer" else None
            if caller is None:
                raise Problem("unauthorized", "this token is not valid", headers={"WWW-Authenticate": "Bearer"})
            return caller
        return self._by_cookie(headers.get("cookie", "")) or (ANYBODY if self.open else None)

    def by_token(self, token: str) -> Caller | None:
        if self._operator and hmac.compare_digest(digest(token), self._operator):
            return Caller(OPERATOR, "admin")
        match = _TOKEN.fullmatch(token)
        found = tokens.secret(self._database, match[1]) if match else None
        right = hmac.compare_digest(digest(match[2] if match else ""), found.hash if found else _NOBODY)
        return Caller(found.id, found.scope) if found and right else None

    def session(self, caller: Caller) -> str:
        """The value of a cookie for this caller."""
        until = str(int(time.time()) + SESSION_SECONDS)
        return f"{caller.id}.{until}.{self._sign(caller.id, until)}"

    def _by_cookie(self, header: str) -> Caller | None:
        try:
            morsel = SimpleCookie(header).get(COOKIE)
        except CookieError:
            return None
        id, _, rest = (morsel.value if morsel else "").partition(".")
        until, _, signature = rest.partition(".")
        if not re.fullmatch(r"operator|[0-9a-f]{16}", id) or not re.fullmatch(r"[0-9]{1,12}", until):
            return None
        if int(until) < time.time() or not hmac.compare_digest(self._sign(id, until).encode(), signature.encode()):
            return None
        if id == OPERATOR:
            return Caller(OPERATOR, "admin")
        found = tokens.secret(self._database, id)
        return Caller(found.id, found.scope) if found else None

    def _sign(self, id: str, until: str) -> str:
        found = None if id == OPERATOR else tokens.secret(self._database, id)
        key = self._operator if id == OPERATOR else found.hash if found else ""
        return hmac.new((key or _NOBODY).encode(), f"session {id} {until}".encode(), hashlib.sha256).hexdigest()
