"""Creates and hashes tokens. A token is `silk_ID_SECRET`. The database stores its id and a hash of its secret."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime

from silkline.model.database import Database
from silkline.store import tokens


def new_token(database: Database, name: str, scope: str, expires_at: datetime | None = None) -> tuple[str, str]:
    """Store a new token. Returns its id and the token; nobody can read the token later."""
    id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    tokens.add(database, id=id, name=name, scope=scope, hash=digest(secret), expires_at=expires_at)
    return id, f"silk_{id}_{secret}"


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()
