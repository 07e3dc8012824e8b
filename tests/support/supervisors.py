"""Real supervisors in real processes, with intervals of a fraction of a second, and what tests ask of them."""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from silkline.errors import Unavailable
from silkline.model.database import Database
from silkline.model.job import LIVE, Job, NewJob, Status, Verb
from silkline.runner.leftovers import tagged
from silkline.service import cgroup
from silkline.store import jobs, logs, results, urls, workers
from silkline.store.opening import open_database

LIBC = ctypes.CDLL(None)  # loaded here: nothing may be loaded between fork and exec
COMMAND = ("-m", "silkline", "worker")
# For tests in which somebody is taken for dead. On a loaded machine a supervisor may then fence itself: that is counted
# as nobody's crash, and such tests must not mind it.
STALE = {"fence_after": 3.0, "stale_after": 4.0}
# For tests in which nobody may be: a supervisor that a loaded machine keeps from its heartbeat is alive.
STALE_LATER: dict[str, Any] = {"fence_after": 5.0, "stale_after": 8.0}
# Work that does not end before the test has seen what it wants to see.
ENDLESS: dict[str, Any] = {"steps": 100_000, "seconds": 0.01}
PATIENCE = 150.0  # seconds; a loaded machine may need them, an idle one needs a few
QUICK = {
    "heartbeat_interval": 0.3,
    "fence_after": 30.0,
    "stale_after": 40.0,
    "watchdog_interval": 0.5,
    "poll_interval": 0.2,
    "wish_interval": 0.1,
    "grace_period": 20.0,
    "kill_after": 20.0,
    "backoff_base": 0.02,
    "backoff_cap": 0.1,
    "memory_interval": 0.2,
    "cleaner_interval": 0.5,
    "disk_free_min": 0,
    "max_retries": 1000,
    "test_kinds": True,
}


def eventually(what: str, check: Callable[[], Any], patience: float = PATIENCE) -> Any:
    """Wait until `check` gives something true; what it gave. It is asked less often when it takes long."""
    give_up = time.monotonic() + patience
    pause = 0.02
    while True:
        found = check()
        if found:
            return found
        if time.monotonic() > give_up:
            raise AssertionError(f"still not so after {patience:g} s: {what}")
        time.sleep(pause)
        pause = min(pause * 1.1, 0.06)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class Patient:
    """The test's own view of the database: it waits out the outages that the test makes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def rows(self, name: str, **parameters: Any) -> list[dict[str, Any]]:
        give_up = time.monotonic() + PATIENCE
        while True:
            try:
                return self._database.rows(name, **parameters)
            except Unavailable:
                if time.monotonic() > give_up:
                    raise
                time.sleep(0.1)


class SupervisorProcess:
    """`silkline worker`, as an operator starts it."""

    def __init__(
        self, database_url: str, data: Path, environment: dict[str, str], inside: Sequence[str] = (), **settings: Any
    ) -> None:
        data.mkdir(parents=True, exist_ok=True)
        self.data = data
        variables = {f"SILKLINE_{name.upper()}": str(value) for name, value in {**QUICK, **settings}.items()}
        self.log_path = data / "supervisor.log"
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [*inside, sys.executable, *COMMAND],
                env={
                    **os.environ,
                    **variables,
                    **environment,
                    "SILKLINE_DATABASE_URL": database_url,
                    "SILKLINE_DATA": str(data),
                },
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=data,
                start_new_session=True,
                preexec_fn=lambda: LIBC.prctl(1, signal.SIGKILL),  # it dies with the tests
            )

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """`kill -9`, and nothing else."""
        self.process.kill()
        self.process.wait()

    def terminate(self) -> int:
        self.process.terminate()
        return self.process.wait(PATIENCE)


class Yard:
    """A database, the supervisors on it, and the jobs in it."""

    def __init__(self, database_url: str, folder: Path) -> None:
        self.url = database_url
        self.folder = folder
        self.database: Any = Patient(open_database(database_url))
        self.supervisors: list[SupervisorProcess] = []

    def start(
        self,
        data: str = "data",
        *,
        environment: dict[str, str] | None = None,
        inside: Sequence[str] = (),
        **settings: Any,
    ) -> SupervisorProcess:
        """`inside`: a command that runs it in another network."""
        supervisor = SupervisorProcess(self.url, self.folder / data, environment or {}, inside, **settings)
        self.supervisors.append(supervisor)
        return supervisor

    def ready(self, supervisor: SupervisorProcess) -> SupervisorProcess:
        """Wait until it has signed on."""
        pid = supervisor.process.pid
        eventually(
            f"the supervisor signs on\n{supervisor.log}",
            lambda: any(worker.pid == pid for worker in workers.everyone(self.database)),
        )
        return supervisor

    def add(self, do: str, *, many: int = 1, tenant: str = "", max_retries: int = 1000, **payload: Any) -> list[str]:
        new = NewJob("diagnostic", {"do": do, **payload}, tenant=tenant, max_retries=max_retries)
        return jobs.enqueue_many(self.database, [new] * many)

    def job(self, id: str) -> Job:
        return jobs.get(self.database, id)

    def runner_of(self, id: str, *, after: int | None = None) -> int:
        """The process of the running attempt (one later than `after`)."""

        def look() -> int | None:
            job = self.job(id)
            fresh = after is None or job.run_lease > after
            return job.pid if job.status is Status.RUNNING and fresh else None

        pid: int = eventually(f"job {id} has a process ({self.job(id)})", look)
        return pid

    def results_of(self, id: str) -> list[int]:
        return sorted(result.url_id for result in results.every(self.database, id))

    def wait_for_results(self, id: str, number: int = 1) -> None:
        eventually(f"job {id} has stored {number} results", lambda: results.count(self.database, id) >= number)

    def wait_for(self, id: str, *statuses: Status) -> Job:
        eventually(
            f"job {id} becomes {statuses} ({self.job(id)})\n{self._logs()}", lambda: self.job(id).status in statuses
        )
        return self.job(id)

    def wait_for_end(self, ids: list[str]) -> list[Job]:
        eventually(
            f"{len(ids)} jobs end ({jobs.counts(self.database)})\n{self._logs()}",
            lambda: all(self.job(id).status not in LIVE for id in ids),
        )
        return [self.job(id) for id in ids]

    def bring_to_an_end(self, *ids: str, more: int = 3) -> list[int]:
        """Let endless `work` end after some more steps, whatever it has done so far; how many that makes of each."""
        for id in ids:
            jobs.wish(self.database, id, Verb.PAUSE)
        paused = [self.wait_for(id, Status.PAUSED) for id in ids]
        steps = [len(self.results_of(id)) + more for id in ids]
        for job, number in zip(paused, steps, strict=True):
            payload = json.dumps({**job.payload, "steps": number})
            with self.database.transaction() as transaction:
                transaction.script(f"UPDATE crawl_jobs SET payload = '{payload}' WHERE id = '{job.id}'")
            jobs.wish(self.database, job.id, Verb.RESUME)
        for id in ids:
            self.wait_for(id, Status.COMPLETED)
        return steps

    def lines(self, id: str) -> str:
        return "\n".join(line.message for line in logs.page(self.database, id, wanted=100_000))

    def adds_up(self, id: str) -> bool:
        counts, tally = urls.counts(self.database, id), urls.tally(self.database, id)
        return counts.discovered == sum(tally.values()) and counts.done == tally["done"]

    def processes_of(self, supervisor: SupervisorProcess) -> set[int]:
        """What lives below a supervisor, by its tag, even when it is dead itself."""
        ids = [worker.id for worker in workers.everyone(self.database) if worker.pid == supervisor.process.pid]
        return {pid for id in ids for pid in tagged(id)}

    def close(self) -> None:
        for supervisor in self.supervisors:
            for pid in (supervisor.process.pid, *self.processes_of(supervisor)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)  # a test that failed may have left it stopped
            if supervisor.process.poll() is None:
                supervisor.kill()
        for worker in workers.everyone(self.database):  # those that could not sign off
            cgroup.remove_of(worker.id)
        self.database.close()

    def _logs(self) -> str:
        return "\n".join(f"{each.log[-4000:]}(exit code {each.process.poll()})" for each in self.supervisors)


@contextmanager
def yard(database_url: str, folder: Path) -> Iterator[Yard]:
    place = Yard(database_url, folder)
    try:
        yield place
    finally:
        place.close()


def show(row: dict[str, Any]) -> None:
    """A line of figures; `make chaos` collects them."""
    path = os.environ.get("SILKLINE_CHAOS_TABLE")
    if path:
        with Path(path).open("a") as table:
            table.write(json.dumps(row) + "\n")
