"""Finds out who calls: by a bearer token with a scope, or by the session of a browser that signed in with a token.

A token is `silk_ID_SECRET`. The database has the id and the SHA-256 of the secret. A comparison takes the same time for
every token. A session is a random number that only the browser has. The database has a hash of it, with the operator's
token as the key, so nobody can get a session from a copy of the database or from an old token.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from silkline.api.problems import Problem
from silkline.api.token_making import digest
from silkline.login_throttle import LoginThrottle
from silkline.model.database import Database
from silkline.store import sessions, tokens

SCOPES = ("read", "write", "admin")  # each includes the scopes before it
WORKER = "worker"  # only for the requests of external workers
ANY = "any"  # every token has it
OPERATOR = "operator"
COOKIE = "silkline_session"
SESSION_SECONDS = int(sessions.LIFETIME.total_seconds())
_TOKEN = re.compile(r"silk_([0-9a-f]{16})_([\w-]{43})", re.ASCII)
_SESSION = re.compile(rf"{COOKIE}=([\w-]{{43}})(?![^;\s])", re.ASCII)
_NOBODY = digest(secrets.token_urlsafe(32))


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and with which scope."""

    id: str
    scope: str

    def may(self, scope: str) -> bool:
        if scope == ANY:
            return True
        if WORKER in (self.scope, scope):
            return self.scope in (scope, "write", "admin")
        return SCOPES.index(self.scope) >= SCOPES.index(scope)


ANYBODY = Caller("anybody", "admin")


class Doorkeeper:
    """Finds the caller of a request. `open`: no token is needed, as on the loopback of a laptop."""

    def __init__(self, database: Database, operator_token: str, *, open: bool) -> None:
        self._database = database
        self._operator = digest(operator_token) if operator_token else ""
        self._throttle = LoginThrottle()
        self.open = open

    def caller(self, headers: Mapping[str, str], address: str) -> Caller | None:
        """Who sent these headers. None: a caller without a token. A wrong token is always refused."""
        authorization = headers.get("authorization")
        if authorization is not None:
            kind, _, token = authorization.partition(" ")
            caller = self.by_token(token.strip(), address) if kind.lower() == "bearer" else None
            if caller is None:
                raise Problem("unauthorized", "this token is not valid", headers={"WWW-Authenticate": "Bearer"})
            return caller
        return self._by_cookie(headers.get("cookie", "")) or (ANYBODY if self.open else None)

    def by_token(self, token: str, address: str) -> Caller | None:
        """The owner of this token. An address that sends many wrong tokens has to wait: a `Problem`.

        A token that Silkline created never waits, because nobody can guess its 256 random bits. A person chose the
        operator's token, so it is checked only if its address may still try.
        """
        caller = self._made_by_us(token)
        if caller is not None:
            return caller
        presented = digest(token)
        _refuse("this address sent too many wrong tokens", self._throttle.wait(address, presented))
        if self._operator and hmac.compare_digest(presented, self._operator):
            self._throttle.was_right(presented)
            return Caller(OPERATOR, "admin")
        self._throttle.was_wrong(address, presented)
        return None

    def _made_by_us(self, token: str) -> Caller | None:
        match = _TOKEN.fullmatch(token)
        found = tokens.secret(self._database, match[1]) if match else None
        right = hmac.compare_digest(digest(match[2] if match else ""), found.hash if found else _NOBODY)
        return Caller(found.id, found.scope) if found and right else None

    def still_valid(self, caller: Caller | None, headers: Mapping[str, str]) -> bool:
        """Whether the caller of an answer that goes on may still read it. This is no use of a session, and no try of a
        token: it neither keeps a session alive nor counts as a wrong token.
        """
        if caller is None or caller == ANYBODY:
            return self.open
        if "authorization" not in headers:
            return self._by_cookie(headers.get("cookie", ""), used=False) == caller
        if caller.id == OPERATOR:
            return True
        found = tokens.secret(self._database, caller.id)
        return found is not None and found.scope == caller.scope

    def begin_session(self, caller: Caller) -> str:
        """The value of a cookie for this caller."""
        _refuse("this token signed in too often", self._throttle.take_login(caller.id))
        session = secrets.token_urlsafe(32)
        sessions.add(self._database, self._hash(session), caller.id)
        return session

    def end_session(self, cookies: str) -> None:
        if session := _session_in(cookies):
            sessions.forget(self._database, self._hash(session))

    def _by_cookie(self, cookies: str, *, used: bool = True) -> Caller | None:
        session = _session_in(cookies)
        id = sessions.token_of(self._database, self._hash(session), used=used) if session else None
        if id is None:
            return None
        if id == OPERATOR:
            return Caller(OPERATOR, "admin") if self._operator else None
        found = tokens.secret(self._database, id)
        return Caller(found.id, found.scope) if found else None

    def _hash(self, session: str) -> str:
        return hmac.new(self._operator.encode(), session.encode(), hashlib.sha256).hexdigest()


def _refuse(why: str, wait: int) -> None:
    """Raise a `Problem` if there are seconds to wait."""
    if wait:
        headers = {"Retry-After": str(wait)}
        raise Problem("too-many-tries", f"{why}; try again in {wait} s", headers=headers)


def has_credentials(headers: Mapping[str, str]) -> bool:
    """Whether the caller of a request is looked up in the database."""
    return "authorization" in headers or bool(_session_in(headers.get("cookie", "")))


def only_session(cookies: bytes) -> bytes:
    """A Cookie header with nothing but our session, or an empty one."""
    session = _session_in(cookies.decode("latin-1"))
    return f"{COOKIE}={session}".encode() if session else b""


def _session_in(cookies: str) -> str:
    """The session in a Cookie header. The standard library would need quadratic time for a cookie of backslashes, and
    splitting the header takes milliseconds if it has very many cookies."""
    for found in _SESSION.finditer(cookies):
        before = cookies[found.start() - 1] if found.start() else ";"
        if before == ";" or before.isspace():
            return found[1]
    return ""
