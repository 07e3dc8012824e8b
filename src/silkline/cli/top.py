"""`silkline top`: the fleet in a terminal, drawn again every few seconds; printed once if the output is no terminal."""

from __future__ import annotations

import dataclasses
import os
import select
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click

from silkline.cli import terminal
from silkline.cli.resources import opened, settings_of
from silkline.cli.session import Session, everywhere
from silkline.cli.workers import living
from silkline.config import Settings
from silkline.errors import StoreError
from silkline.model.database import Database
from silkline.store.fleet import FleetView, fleet

QUIT = frozenset(b"qQ\x03\x04")  # also Ctrl-C and Ctrl-D


@click.command()
@click.option(
    "--interval",
    metavar="TIME",
    type=click.FloatRange(0.2, 3_600),
    default=2.0,
    show_default=True,
    help="Seconds between two updates.",
)
@everywhere()
@click.pass_obj
def top(session: Session, interval: float) -> None:
    """Show machines, queue and running jobs, live.

    Press q to quit. If the output is not a terminal, it is printed once.
    """
    settings = settings_of(session)
    with opened(settings) as database:
        if session.json:
            terminal.print_json(dataclasses.asdict(_seen(database, settings)))
        elif sys.stdout.isatty() and sys.stdin.isatty():
            _follow(database, settings, interval)
        else:
            from silkline.cli.fleet_screen import print_once

            with terminal.noticed():
                print_once(_seen(database, settings), sys.stdout)


def _seen(database: Database, settings: Settings) -> FleetView:
    return fleet(database, living(database, settings))


def _follow(database: Database, settings: Settings, interval: float) -> None:
    from silkline.cli.fleet_screen import Screen

    with Screen() as screen, _keys() as keyboard:
        while True:
            try:
                screen.show(_seen(database, settings))
            except StoreError as error:  # keep the last numbers on the screen
                screen.complain(str(error))
            if _quits(keyboard, interval):
                return


def _quits(keyboard: int, seconds: float) -> bool:
    """Wait this long for a key. Returns whether it was one that quits."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        readable, _, _ = select.select([keyboard], [], [], left)
        if readable:
            pressed = os.read(keyboard, 64)
            if not pressed or QUIT & set(pressed):
                return True
    return False


@contextmanager
def _keys() -> Iterator[int]:
    """The keyboard, without line editing and echo."""
    import termios
    import tty

    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    tty.setcbreak(keyboard)
    try:
        yield keyboard
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
