"""Twenty processes and one queue: every job is claimed by exactly one of them."""

import subprocess
import sys

from silkline.model.database import Database
from silkline.model.job import NewJob, Status
from silkline.store import jobs

CLAIMERS, JOBS, BATCH = 20, 5_000, 25
CLAIM_ALL = """
import sys
from silkline.model.job import Status
from silkline.store import jobs
from silkline.store.opening import open_database
url, name, batch = sys.argv[1], sys.argv[2], int(sys.argv[3])
database = open_database(url)
print("ready", flush=True)
sys.stdin.readline()
while True:
    taken = jobs.claim(database, name, "h", ["page", "site"], batch)
    for job in taken:
        print(job.id, job.run_lease)
    # Nothing taken may mean that others were just taking the rest.
    if not taken and not jobs.counts(database)[Status.QUEUED]:
        break
database.close()
"""


def test_every_job_is_claimed_exactly_once(database: Database, migrated_url: str) -> None:
    new = [NewJob(("page", "site")[number % 2], {}, tenant=f"t{number % 3}") for number in range(JOBS)]
    ids = jobs.enqueue_many(database, new)
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", CLAIM_ALL, migrated_url, f"w{number}", str(BATCH)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(CLAIMERS)
    ]
    for program in programs:
        assert program.stdout
        assert program.stdout.readline() == "ready\n"
    claims: dict[str, list[tuple[str, str]]] = {}
    for program in programs:  # all start when the last is ready
        assert program.stdin
        program.stdin.write("\n")
        program.stdin.flush()
    for number, program in enumerate(programs):
        output, _ = program.communicate(timeout=200)
        assert program.returncode == 0
        for line in output.splitlines():
            id, lease = line.split()
            claims.setdefault(id, []).append((f"w{number}", lease))
    assert sorted(claims) == sorted(ids)
    assert {id: len(claimers) for id, claimers in claims.items() if len(claimers) != 1} == {}
    assert jobs.counts(database)[Status.RUNNING] == JOBS
    for job in jobs.running(database):
        assert claims[job.id] == [(job.worker_id, "1")]
        assert job.run_lease == job.attempt == 1
