"""The settings and the database of one run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from silkline import config
from silkline.cli.session import Session
from silkline.config import Loaded, Settings
from silkline.store.database import Database, open_database


def loaded(session: Session) -> Loaded:
    """The settings, with where each came from."""
    return config.load(session.overrides)


def settings_of(session: Session) -> Settings:
    return loaded(session).settings


@contextmanager
def opened(settings: Settings) -> Iterator[Database]:
    """The database, brought up to date."""
    database = open_database(settings.database)
    try:
        yield database
    finally:
        database.close()
