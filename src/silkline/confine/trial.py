"""Tests the protection of each role on this machine, in short-lived processes. For `silkline doctor` and tests."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from dataclasses import asdict

from silkline.confine.roles import Confinement, confine_fetcher, confine_reader, confine_runner

_ROLES: dict[str, Callable[[], Confinement]] = {
    "readers": confine_reader,
    "fetchers": confine_fetcher,
    "runners": confine_runner,
}


def in_force() -> dict[str, Confinement]:
    """The protection that is in force for each role here. Forks, so the caller must have no other threads."""
    return {role: _in_a_child(confine) for role, confine in _ROLES.items()}


def holds() -> bool:
    """Whether a confined reader really cannot open a file or a socket here."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        confine_reader()
        refused = _refused(lambda: os.open("/etc/passwd", os.O_RDONLY)) and _refused(lambda: socket.socket())
        os.write(writing, b"1" if refused else b"0")
        os._exit(0)
    return _answer(child, reading, writing) == b"1"


def _in_a_child(confine: Callable[[], Confinement]) -> Confinement:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, json.dumps(asdict(confine())).encode())
        os._exit(0)
    answer = _answer(child, reading, writing)
    return Confinement(**json.loads(answer)) if answer else Confinement()


def _answer(child: int, reading: int, writing: int) -> bytes:
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer


def _refused(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError:
        return True
    return False
