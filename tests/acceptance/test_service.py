"""A job added at the command line is run by `silkline worker`, and both end as they should."""

import signal

import pytest

from tests.acceptance.conftest import PATIENCE, Silkline


@pytest.mark.parametrize("program", ["worker", "serve"])
def test_a_job_from_add_to_completed(on_both: Silkline, program: str) -> None:
    testing = {"SILKLINE_TEST_KINDS": "true"}
    added = on_both("jobs", "add", "--kind", "diagnostic", "--payload", '{"do": "work", "steps": 3}', **testing)
    assert added.code == 0, added
    supervisor = on_both.start(program, "--slots", "1", **testing)
    try:
        follower = on_both("logs", "-f", "last", **testing)
        assert follower.code == 0, follower
    finally:
        supervisor.send_signal(signal.SIGTERM)
        out, err = supervisor.communicate(timeout=PATIENCE)
    assert (supervisor.returncode, out) == (0, b""), err.decode()
    assert (b"Silkline is at http://127.0.0.1:" in err) is (program == "serve")
    assert on_both("jobs", "show", "last", "--json").json["status"] == "completed"
    assert "No worker is alive" in on_both("workers").err


def test_a_worker_that_cannot_reach_its_database_says_so(silkline: Silkline) -> None:
    refusal = silkline("worker", "--database-url", "postgresql://me:secret@127.0.0.1:1/x")
    assert refusal.code == 1
    assert "silkline: PostgreSQL cannot be used now" in refusal.err
    assert "secret" not in refusal.err
