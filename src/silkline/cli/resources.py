"""The settings and the database of one command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from silkline import config
from silkline.cli.session import Session
from silkline.config import Loaded, Settings
from silkline.errors import DiskFull, NotFound, SchemaTooNew, StoreError, Unavailable, UsageError
from silkline.metrics.process import attach_later
from silkline.model.database import Database
from silkline.model.secret_url import masked
from silkline.store.opening import open_database, open_existing

OLD_DATA = Path("silkline-data")  # the data directory of old versions
ADOPT = "set SILKLINE_DATABASE_URL to it and run `silkline db upgrade`"


def loaded(session: Session) -> Loaded:
    """The settings, each with its source."""
    return config.load(session.overrides)


def settings_of(session: Session) -> Settings:
    """The settings of a command that uses the database. Prints a message about surprising ones."""
    found = loaded(session)
    settings = found.settings
    if found.database_is_borrowed and not _is_ours(settings.database):
        session.say_once(
            f"DATABASE_URL is ignored, because that database has no tables of Silkline; to use it, {ADOPT}."
        )
        settings = replace(settings, database_url="")
    if found.sources["data"] == "default" and OLD_DATA.is_dir():
        session.say_once(
            f"The data directory is now {settings.data}; to use the folder {OLD_DATA} here, add --data ./{OLD_DATA}."
        )
    return settings


def _is_ours(url: str) -> bool:
    """Whether a database that may belong to another program contains Silkline's tables. Changes nothing."""
    try:
        database = open_existing(url)
    except (SchemaTooNew, DiskFull):
        raise
    except Unavailable as error:
        raise Unavailable(
            f"the database of DATABASE_URL does not answer, so Silkline cannot check whether it contains its tables: "
            f"unset DATABASE_URL, or {ADOPT} ({error})"
        ) from error
    except (UsageError, StoreError):
        return False  # a kind of database, or a form of its URL, that Silkline cannot use
    if database is None:
        return False
    database.close()
    return True


@contextmanager
def opened(settings: Settings) -> Iterator[Database]:
    """Open the database; create or upgrade it if needed."""
    attach_later(settings.data, "command")
    database = open_database(settings.database)
    try:
        yield database
    finally:
        database.close()


@contextmanager
def existing(settings: Settings) -> Iterator[Database | None]:
    """Open and upgrade the database, or give None if there is none yet. For commands that only list."""
    database = open_existing(settings.database)
    attach_later(settings.data, "command")
    try:
        yield database
    finally:
        if database is not None:
            database.close()


@contextmanager
def opened_to_find(settings: Settings) -> Iterator[Database]:
    """Open the database for a command about something in it. Does not create a database."""
    with existing(settings) as database:
        if database is None:
            raise NotFound(no_jobs(settings))
        yield database


def no_jobs(settings: Settings) -> str:
    """Say that nothing was ever stored, and where Silkline looked."""
    place = masked(settings.database_url) or settings.data.absolute()
    return f"there are no jobs yet: nothing is stored in {place}"
