"""`silkline top` in a pipe, as JSON, and in a terminal."""

import os
import pty
import select
import subprocess
import time
from contextlib import closing

from silkline.store import workers
from silkline.store.opening import open_database
from tests.acceptance.conftest import PATIENCE, Silkline


def test_in_a_pipe_it_prints_once(on_both: Silkline) -> None:
    with closing(open_database(on_both.database_url)) as database:
        workers.register(database, id="w-1", host="a-host", pid=42, boot_id="b", slots=3, version="0.1.0")
    ended = on_both("top")
    assert ended.code == 0
    assert "1 machine " in ended.out
    assert "a-host" in ended.out
    assert "0 of 3" in ended.out
    (machine,) = on_both("top", "--json").json["machines"]
    assert (machine["host"], machine["slots"], machine["load"]) == ("a-host", 3, None)


def test_in_a_terminal_it_is_drawn_until_q(silkline: Silkline) -> None:
    here, there = pty.openpty()
    environment = silkline.environment(TERM="xterm", COLUMNS="100", LINES="30")
    command = silkline.command("top", "--interval", "0.2")
    with subprocess.Popen(command, cwd=silkline.folder, env=environment, stdin=there, stdout=there) as process:
        os.close(there)
        drawn, give_up = b"", time.monotonic() + PATIENCE
        while drawn.count(b"Silkline fleet") < 3 and time.monotonic() < give_up:
            if select.select([here], [], [], 1.0)[0]:
                drawn += os.read(here, 65_536)
        os.write(here, b"xq")
        drawn += _rest(here)
        assert process.wait(PATIENCE) == 0
    os.close(here)
    assert drawn.index(b"\x1b[?1049h") < drawn.index(b"Silkline fleet"), "it draws on the alternate screen"
    assert drawn.rindex(b"\x1b[?1049l") > drawn.rindex(b"Silkline fleet"), "and leaves it"
    assert b"No worker is alive" in drawn
    assert b"q quits" in drawn


def _rest(here: int) -> bytes:
    found = b""
    while True:
        try:
            found += (data := os.read(here, 65_536))
        except OSError:  # the other end is closed
            return found
        if not data:
            return found
