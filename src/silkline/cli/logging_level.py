"""Which log lines a command writes to stderr, and in which format."""

from __future__ import annotations

import logging

from silkline import log
from silkline.cli.session import MESSAGES, Session
from silkline.config import Settings


def level_of(session: Session, settings: Settings, *, usual: int, quiet: int) -> int:
    """The level from --log-level, else from -v or -q, else from the setting log_level, else `usual`."""
    if settings.log_level and ("log_level" in session.overrides or not (session.verbose or session.quiet)):
        return log.level_named(settings.log_level)
    if session.quiet:
        return quiet
    return logging.DEBUG if session.verbose else usual


def start_log(session: Session, settings: Settings, *, usual: int, quiet: int) -> int:
    """Set up the log of a command. Returns its level."""
    level = level_of(session, settings, usual=usual, quiet=quiet)
    log.set_up(level, settings.log_format)
    session.logs_json = settings.log_format == "json"
    logging.getLogger(MESSAGES).setLevel(logging.INFO)  # they are shown whatever the level is, except with --quiet
    log.hide(settings.secret_texts())
    return level


def log_if_asked(session: Session, settings: Settings) -> None:
    """Set up the log of a command that runs a job in this process; without the setting log_level it does not log."""
    if settings.log_level:
        start_log(session, settings, usual=logging.WARNING, quiet=logging.ERROR)
