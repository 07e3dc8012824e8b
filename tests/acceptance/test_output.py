"""Data on stdout, messages on stderr; nothing raw on a terminal; pipes and Ctrl-C are no drama."""

import contextlib
import os
import pty
import signal
import subprocess
from collections.abc import Callable

import pytest

from silkline.model.database import Database
from silkline.model.job import Job
from silkline.store import logs
from tests.acceptance.conftest import PATIENCE, Silkline

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\r\x08\x7f"
RAW = {"\x1b", "\x07", "\x08", "\x7f", "\x9b", "\u202e", "\r"}


@pytest.mark.parametrize("command", [("jobs",), ("jobs", "show", "last"), ("logs", "last")])
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_control_characters_never_reach_the_terminal(
    silkline: Silkline,
    store: Database,
    enqueue: Callable[..., Job],
    command: tuple[str, ...],
    form: tuple[str, ...],
) -> None:
    job = enqueue(f"https://example.com/{HOSTILE}", tenant=HOSTILE, dedupe_key=HOSTILE, metadata={HOSTILE: HOSTILE})
    logs.append(store, [logs.NewLine(job.id, 1, "info", f"one{HOSTILE}\n2030-01-01 forged", store.now())])
    shown = silkline(*command, *form)
    assert shown.code == 0, shown
    assert not RAW & set(shown.out), shown
    assert "evil" in shown.out


def test_a_line_in_a_message_cannot_pass_for_a_line_of_the_log(
    silkline: Silkline, store: Database, enqueue: Callable[..., Job]
) -> None:
    job = enqueue()
    logs.append(store, [logs.NewLine(job.id, 1, "info", "one\n2030-01-01 00:00:00 #1 INFO forged", store.now())])
    assert silkline("logs", "last").out.splitlines()[1] == "    2030-01-01 00:00:00 #1 INFO forged"


def test_secrets_in_a_payload_are_not_shown(silkline: Silkline, enqueue: Callable[..., Job]) -> None:
    payload = {
        "url": "https://me:hush1@example.com/?token=hush2&page=2",
        "headers": {"Authorization": "Bearer hush3", "X-Api-Key": "hush4", "Accept-Language": "de"},
        "cookies": {"sid": "hush5"},
        "proxy": "http://me:hush6@proxy:8080",
    }
    enqueue(payload["url"], payload=payload)
    for form in ((), ("--json",)):
        for command in (("jobs",), ("jobs", "show", "last")):
            shown = silkline(*command, *form)
            assert "hush" not in shown.out, shown
    assert '"Accept-Language": "***"' in shown.out, "the name of a header is shown, never its value"
    assert "page=2" in shown.out


def test_whoever_reads_may_go_away(silkline: Silkline, enqueue: Callable[..., Job]) -> None:
    for _ in range(3):
        enqueue("https://example.com/" + "a" * 60_000)
    process = silkline.start("jobs", "ls", "--json")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(PATIENCE) == 141


def test_a_disk_that_takes_no_output(silkline: Silkline, enqueue: Callable[..., Job]) -> None:
    enqueue()
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            silkline.command("jobs"),
            cwd=silkline.folder,
            env=silkline.environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=PATIENCE,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == b"silkline: the output cannot be written: No space left on device\n"


def test_ctrl_c_is_quiet(silkline: Silkline, store: Database, enqueue: Callable[..., Job]) -> None:
    job = enqueue()
    logs.append(store, [logs.NewLine(job.id, 1, "info", "first", store.now())])
    process = silkline.start("logs", "-f", "last")
    assert process.stdout is not None
    assert b"first" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert (out, err, process.returncode) == (b"", b"", 130)


def test_quiet_leaves_only_errors(silkline: Silkline) -> None:
    added = silkline("-q", "jobs", "add", "--kind", "page", "https://example.com/")
    assert added.err == ""
    assert len(added.out.strip()) == 36
    silkline("-q", "jobs", "retry", "last").refused(1, "cannot retry")


def on_terminal(silkline: Silkline, *arguments: str, **more: str) -> str:
    """What a person sees who has a terminal 80 columns wide."""
    ours, theirs = pty.openpty()
    environment = silkline.environment(TERM="xterm", COLUMNS="80", **more)
    process = subprocess.Popen(
        silkline.command(*arguments), cwd=silkline.folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError):  # a terminal that was hung up
        while part := os.read(ours, 65_536):
            seen += part
    os.close(ours)
    assert process.wait(PATIENCE) == 0
    return seen.decode()


def test_colours_and_width_follow_the_terminal(silkline: Silkline, enqueue: Callable[..., Job]) -> None:
    enqueue("https://example.com/" + "a" * 100, paused=True)
    coloured = on_terminal(silkline, "jobs")
    assert "\x1b[33mpaused\x1b[0m" in coloured
    plain = on_terminal(silkline, "jobs", NO_COLOR="1")
    assert "\x1b" not in plain
    assert max(len(line) for line in plain.splitlines()) <= 80
    assert "…" in plain
    assert "a" * 100 in silkline("jobs").out


def test_any_locale_will_do(silkline: Silkline, enqueue: Callable[..., Job]) -> None:
    enqueue("https://example.com/ü\u2603")
    shown = silkline("jobs", PYTHONIOENCODING="ascii")
    assert shown.code == 0, shown
    assert "\\u2603" in shown.out


def test_help_and_version(silkline: Silkline) -> None:
    assert silkline().out == silkline("--help").out
    assert "never lose their thread" in silkline("-h").out
    assert silkline("--version").out.startswith("silkline 0.")
    assert silkline("jobs", "--help").out.startswith("Usage: silkline jobs")
