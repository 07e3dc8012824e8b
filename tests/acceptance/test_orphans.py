"""The whole tree of a crawl is killed, the command included: what a person then asks becomes true at once."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing

import psutil
import pytest

from silkline.model.database import Database
from silkline.model.job import Status
from silkline.store import jobs, logs, urls, workers
from silkline.store.opening import open_database
from tests.acceptance.conftest import Silkline
from tests.crawl.harness import SyntheticWeb
from tests.support.served import Served
from tests.support.supervisors import eventually

RUNNING = ("is running", "to change its sizes, pause it first, then resume it with the new sizes")


@pytest.fixture
def web() -> Iterator[SyntheticWeb]:
    with closing(SyntheticWeb(hosts=10, pages=20, latency=0.02)) as web:
        web.slow_after(30)
        yield web


@pytest.fixture
def database(on_both: Silkline) -> Iterator[Database]:
    with closing(open_database(on_both.database_url)) as database:
        yield database


def crawling(silkline: Silkline, database: Database, web: SyntheticWeb) -> "subprocess.Popen[bytes]":
    """A crawl that has stored pages and is not over soon."""
    options = ("--scope", "any", "--speed", "max", "--allow-private", "127.0.0.0/8", "--concurrency", "5")
    command = silkline.start("crawl", web.start, "--fetchers", "2", *options)
    eventually("there is a job", lambda: jobs.page(database))
    id = jobs.find(database, "last").id
    eventually("some pages are stored", lambda: urls.counts(database, id).done >= 10)
    return command


def tree_of(command: "subprocess.Popen[bytes]") -> list[psutil.Process]:
    process = psutil.Process(command.pid)
    return [process, *process.children(recursive=True)]


def kill_tree(command: "subprocess.Popen[bytes]") -> None:
    """`kill -9` for every process at once."""
    tree = tree_of(command)
    for process in tree:
        process.send_signal(signal.SIGSTOP)
    for process in tree:
        process.kill()
    command.communicate()
    psutil.wait_procs(tree, timeout=60)


def test_resume_takes_a_dead_owners_job_back_and_goes_on_with_the_new_sizes(
    on_both: Silkline, database: Database, web: SyntheticWeb
) -> None:
    command = crawling(on_both, database, web)
    lost = jobs.find(database, "last")
    kill_tree(command)
    assert jobs.get(database, lost.id).status is Status.RUNNING
    web.slow_after(None)
    resumed = on_both("resume", "last", "--fetchers", "4", "--parsers", "1")
    assert resumed.code == 0, resumed
    job = jobs.get(database, lost.id)
    assert (job.status, job.crash_count) == (Status.COMPLETED, 0)
    assert (job.payload["fetchers"], job.payload["parsers"]) == (4, 1)
    stored = {row.url for row in urls.page(database, job.id, wanted=10_000, state="done")}
    assert stored == web.reachable()
    said = [line.message for line in logs.page(database, job.id, wanted=1_000)]
    (line,) = (each for each in said if "was lost" in each)
    assert line.startswith("attempt 1 was lost: its owner ")
    assert str(lost.worker_id) in line
    assert "attempt 2 goes on" in line
    assert any("4 fetchers and 1 parser" in each for each in said)


@pytest.mark.parametrize(("verb", "status"), [("pause", "paused"), ("stop", "stopped"), ("cancel", "cancelled")])
def test_what_is_asked_of_an_orphan_is_a_fact_at_once(
    on_both: Silkline, database: Database, web: SyntheticWeb, verb: str, status: str
) -> None:
    command = crawling(on_both, database, web)
    kill_tree(command)
    done = on_both("jobs", verb, "last", "--json")
    assert (done.code, done.json["status"]) == (0, status), done
    job = jobs.find(database, "last")
    assert job.status == status
    assert any(f"the job is {status}" in line.message for line in logs.page(database, job.id, wanted=1_000))


def test_the_living_are_left_alone_even_when_they_do_not_move(
    on_both: Silkline, database: Database, web: SyntheticWeb
) -> None:
    command = crawling(on_both, database, web)
    before = jobs.find(database, "last")
    command.send_signal(signal.SIGSTOP)
    try:
        on_both("resume", "last", "--fetchers", "4").refused(1, *RUNNING)
        assert on_both("jobs", "pause", "last").err.endswith("is pausing.\n")
        job = jobs.get(database, before.id)
        assert (job.status, job.run_lease, job.payload) == (Status.RUNNING, before.run_lease, before.payload)
    finally:
        command.send_signal(signal.SIGCONT)
    command.communicate(timeout=60)
    assert command.returncode == 3
    assert not any("was lost" in line.message for line in logs.page(database, before.id, wanted=1_000))


def test_a_supervisor_that_wrote_to_another_folder_is_known_by_its_process(
    on_both: Silkline, database: Database, web: SyntheticWeb
) -> None:
    command = crawling(on_both, database, web)
    elsewhere = {"SILKLINE_DATA": str(on_both.folder / "elsewhere"), "SILKLINE_DATABASE_URL": on_both.database_url}
    on_both("resume", "last", "--fetchers", "4", **elsewhere).refused(1, *RUNNING)
    kill_tree(command)
    assert on_both("jobs", "pause", "last", "--json", **elsewhere).json["status"] == "paused"


def test_a_killed_fetch_can_be_cancelled(on_both: Silkline, database: Database, web: SyntheticWeb) -> None:
    web.slow_after(0)
    command = on_both.start("fetch", *(f"{web.start}?{number}" for number in range(100)), "--speed", "polite")
    eventually("there is a job", lambda: jobs.page(database))
    eventually("it runs", lambda: jobs.find(database, "last").status is Status.RUNNING)
    command.kill()
    command.communicate()
    assert on_both("jobs", "cancel", "last", "--json").json["status"] == "cancelled"


def test_the_api_and_the_page_take_an_orphan_back_at_once(
    on_both: Silkline, database: Database, web: SyntheticWeb
) -> None:
    """By its watchdog a server would take it back too, but only every minute."""
    data = on_both.folder / "data"
    with closing(Served(on_both.database_url, data, watchdog_interval=3_600, slots=1)) as server:
        client = server.ready()
        command = crawling(on_both, database, web)
        id = jobs.find(database, "last").id
        kill_tree(command)
        assert client.post(f"/v1/jobs/{id}/pause").json["status"] == "paused"
        web.slow_after(None)
        client.post(f"/v1/jobs/{id}/resume", {"fetchers": 3, "nonsense": 1}).problem(422, "invalid", "nonsense")
        assert jobs.get(database, id).status is Status.PAUSED, "a refused verb changes nothing"
        resumed = client.post(f"/v1/jobs/{id}/resume", {"fetchers": 3, "parsers": 1, "concurrency": 7})
        spec = resumed.json["spec"]
        assert (spec["fetchers"], spec["parsers"], spec["concurrency"]) == (3, 1, 7)
        client.wait_for(id, "completed")
        said = "\n".join(line.message for line in logs.page(database, id, wanted=1_000))
        assert "crawling with 3 fetchers and 1 parser" in said


def test_a_button_of_the_page_takes_an_orphan_back(on_both: Silkline, database: Database, web: SyntheticWeb) -> None:
    data = on_both.folder / "data"
    with closing(Served(on_both.database_url, data, watchdog_interval=3_600)) as server:
        client = server.ready()
        command = crawling(on_both, database, web)
        id = jobs.find(database, "last").id
        kill_tree(command)
        pressed = client.post(f"/jobs/{id}/stop", b"", Content_Type="application/x-www-form-urlencoded")
        assert pressed.status in (200, 303), pressed
        assert jobs.get(database, id).status is Status.STOPPED


def test_a_workers_table_from_another_boot_proves_nothing(
    on_both: Silkline, database: Database, web: SyntheticWeb
) -> None:
    """A pid of another boot, or of another pid namespace, may be anybody's: such an owner is left alone."""
    workers.register(database, id="elsewhere", host="a", pid=2**22 + 1, boot_id="b", slots=1, version="1")
    on_both("jobs", "add", "--kind", "page", web.start)
    jobs.claim(database, "elsewhere", "a", ["page"], 1)
    assert on_both("jobs", "pause", "last").err.endswith("is pausing.\n")
    assert jobs.find(database, "last").status is Status.RUNNING
