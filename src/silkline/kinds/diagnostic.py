"""A kind of job that fails on purpose, for tests and drills. Available only with the setting `test_kinds`."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time

from silkline.errors import Permanent, Temporary
from silkline.model.job import End
from silkline.model.kind import Context
from silkline.model.ledger import DONE, Checkpoint, NewResult, NewUrl, Settled
from silkline.model.spec import DiagnosticSpec
from silkline.store.urls import last_id, queued


def run(context: Context[DiagnosticSpec]) -> End | None:
    spec = context.spec
    context.log.info("diagnostic job: %s", spec.do)
    return _ACTS[spec.do](context, spec)


def _nothing(context: Context[DiagnosticSpec], spec: DiagnosticSpec) -> End | None:
    return None


def _work(context: Context[DiagnosticSpec], spec: DiagnosticSpec) -> End | None:
    """`steps` results, found in one checkpoint and stored in the next. Continues where the last attempt stopped."""
    progress, database, id = context.progress, context.progress.database, context.progress.job.id
    waiting = [url.id for url in queued(database, id)]
    for step in [*waiting, *range(last_id(database, id) + 1, spec.steps + 1)]:
        if order := context.control.wait(spec.seconds):
            return order
        url = f"https://example.test/{step}"
        if step not in waiting:
            progress.record(Checkpoint(found=[NewUrl(step, step, url, "example.test", 0)]))
        result = NewResult(step, url, step, url, step, json.dumps({"markdown": spec.text}), True, "{}")
        progress.record(Checkpoint(settled=[Settled(step, DONE)], results=[result]))
    return None


def _sleep(context: Context[DiagnosticSpec], spec: DiagnosticSpec) -> End | None:
    give_up = time.monotonic() + spec.seconds
    while time.monotonic() < give_up:
        if order := context.control.wait(min(0.5, spec.seconds)):
            return order
        context.progress.report()
    return None


def _spin(context: Context[DiagnosticSpec], spec: DiagnosticSpec) -> End | None:
    """Hold the interpreter's lock: no other thread of this process runs."""
    ctypes.PyDLL(None).sleep(ctypes.c_uint(int(spec.seconds)))
    return None


def _hang(context: Context[DiagnosticSpec], spec: DiagnosticSpec) -> End | None:
    signal.pause()
    return None


def _disobey(context: Context[DiagnosticSpec], spec: DiagnosticSpec) -> End | None:
    """Send reports, but ignore orders."""
    give_up = time.monotonic() + spec.seconds
    while time.monotonic() < give_up:
        time.sleep(0.1)
        context.progress.report()
    return None


def _leak(context: Context[DiagnosticSpec], spec: DiagnosticSpec) -> End | None:
    """Allocate `size` bytes in pieces of 4 MiB: the first `steps` of them at once, the others `seconds` apart."""
    kept = []
    for number in range(1, max(spec.size >> 22, 1) + 1):
        kept.append(os.urandom(1 << 22))
        context.progress.report()
        if number >= spec.steps and context.control.wait(spec.seconds):
            break
    return None


def _segfault(context: Context[DiagnosticSpec], spec: DiagnosticSpec) -> End | None:
    ctypes.string_at(0)
    return None


def _escape(context: Context[DiagnosticSpec], spec: DiagnosticSpec) -> End | None:
    """Leave processes behind in every possible way: orphans, new sessions, other programs, empty environments."""
    script = f"import time; time.sleep(600)  # escaped from {context.progress.job.id}"
    environments: tuple[dict[str, str] | None, ...] = (None, {})
    for environment in environments:
        subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-c", script], env=environment, start_new_session=True
        )
    for _ in range(2):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(600)
            os._exit(0)
    return _sleep(context, spec)


def _flood(context: Context[DiagnosticSpec], spec: DiagnosticSpec) -> End | None:
    """Write `size` bytes of output, half of it without a line break."""
    chunk = b"x" * 65_536
    for number in range(max(spec.size // len(chunk), 1)):
        os.write(1, chunk if number % 2 else chunk[:-1] + b"\n")
    context.log.info("flooded")
    return None


def _exit(context: Context[DiagnosticSpec], spec: DiagnosticSpec) -> End | None:
    if spec.code == 75:
        raise Temporary(spec.text or "come back later")
    if spec.code == 65:
        raise Permanent(spec.text or "this can never work")
    print(spec.text or "leaving early", file=sys.stderr, flush=True)  # noqa: T201 - what a broken program does
    os._exit(spec.code)


_ACTS = {
    "nothing": _nothing,
    "work": _work,
    "sleep": _sleep,
    "spin": _spin,
    "hang": _hang,
    "leak": _leak,
    "segfault": _segfault,
    "escape": _escape,
    "flood": _flood,
    "exit": _exit,
    "disobey": _disobey,
}
