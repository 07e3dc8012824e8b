"""Compares this checkout with another one, or with itself without a part, on a machine whose speed changes all the time.

    python -m benchmarks.side_by_side --against DIR --without safety --without metrics --pages 6000

All sides crawl the web of benchmarks/crawl.py at the same time, but only one of them runs at any moment: the others are
stopped by a signal, and after a fraction of a second it is the turn of the next one. So other programs, the clock of the
processor and its caches slow all sides down alike, and their ratio is steady where the times of two runs, one after the
other, differ by a fifth. CPU is the CPU time of the whole process tree, with the start. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks import crawl

CASES = {"links only": ("http", "none"), "Markdown": ("http", "full"), "main content": ("http", "markdown")}
CASES["links only, HTTPS"] = ("https", "none")
TURN = 0.25


@dataclass
class Side:
    name: str
    process: subprocess.Popen[bytes]
    out: Path
    cpu: float = 0.0

    @property
    def has_ended(self) -> bool:
        """Whether the command has ended; its CPU time is that of all its processes."""
        if self.process.returncode is None:
            pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
            if pid:
                self.process.returncode = os.waitstatus_to_exitcode(status)
                self.cpu = usage.ru_utime + usage.ru_stime
        return self.process.returncode is not None

    def signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(psutil.Error):
            first = psutil.Process(self.process.pid)
            for process in (first, *first.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    process.send_signal(number)

    def pages(self) -> int:
        if self.process.returncode:
            raise SystemExit(f"{self.name} ended with {self.process.returncode}")
        return int(json.loads(self.out.read_text())["progress"]["done"])


def start(name: str, source: Path, without: str, web: dict[str, str], case: tuple[str, str], pages: int) -> Side:
    scheme, content = case
    folder = tempfile.mkdtemp(prefix="silkline-side-")
    out = Path(folder) / "job.json"
    environment = crawl.silkline_environment(source, folder, web["bundle"], without)
    command = ["taskset", "-c", "0", *crawl.silkline_command(web[scheme], pages, content)]
    with out.open("w") as printed:
        process = subprocess.Popen(
            command,
            env={**os.environ, **environment, **crawl.BYTE_CODE},
            stdout=printed,
            start_new_session=True,  # or a shell that runs this would stop with it
        )
    return Side(name, process, out)


def run_in_turns(sides: list[Side]) -> None:
    """Let one side run at a time, until all have ended."""
    for side in sides:
        side.signal(signal.SIGSTOP)
    for side in itertools.cycle(sides):
        if all(each.has_ended for each in sides):
            return
        if not side.has_ended:
            side.signal(signal.SIGCONT)
            time.sleep(TURN)
            if not side.has_ended:
                side.signal(signal.SIGSTOP)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=6_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default="", help="only the cases whose name contains this text")
    parser.add_argument("--against", type=Path, action="append", default=[], help="another checkout of Silkline")
    parser.add_argument("--without", action="append", default=[], choices=["safety", "metrics"])
    options = parser.parse_args()
    kinds: list[tuple[str, Path, str]] = [("this", crawl.ROOT, "")]
    kinds += [(other.name, other.resolve(), "") for other in options.against]
    kinds += [(f"without {part}", crawl.ROOT, part) for part in options.without]
    print("| | " + " | ".join(f"{name}, CPU-ms/page | this beside it" for name, *_ in kinds[1:]) + " | this |")
    print("|---" * (2 * len(kinds)) + "|")
    with crawl.nginx("1") as web:
        for _, (case, spec) in itertools.product(range(options.rounds), CASES.items()):
            if options.only not in case:
                continue
            sides = [start(*kind, web, spec, options.pages) for kind in kinds]
            run_in_turns(sides)
            cost = {side.name: 1000 * side.cpu / side.pages() for side in sides}
            for side in sides:
                shutil.rmtree(side.out.parent)
            ours = cost["this"]
            others = [f"{each:.2f} | {100 * ours / each - 100:+.1f} %" for each in list(cost.values())[1:]]
            print(f"| {case} | {' | '.join(others)} | {ours:.2f} |", flush=True)


if __name__ == "__main__":
    main()
