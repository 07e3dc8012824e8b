"""Text that databases do not like: NUL, half surrogate pairs, numbers that are not JSON, very much of it."""

import json
from typing import Any

import pytest

from silkline.errors import UsageError
from silkline.model.database import Database
from silkline.model.job import End, NewJob
from silkline.model.ledger import Checkpoint
from silkline.store import jobs, logs, results, urls
from tests.store.given import finished, queued, result, running, settled, url

REPLACED = "\ufffd"
ODD: dict[str, tuple[Any, Any]] = {
    "nul": ("a\x00b", f"a{REPLACED}b"),
    "half a pair": ("a\ud800b", "a?b"),
    "the other half": ("\udfff", "?"),
    "an escape written out": ("say \\u0000 loud", "say \\u0000 loud"),
    "an escape and a nul": ("\\u0000\x00\\", f"\\u0000{REPLACED}\\"),
    "a surrogate escape written out": ("\\ud800", "\\ud800"),
    "backslashes": ("\\\\\\", "\\\\\\"),
    "every plane": ("aü€𐍈👩‍👩‍👧\u2028\u202e", "aü€𐍈👩‍👩‍👧\u2028\u202e"),
    "control characters": ("\x01\x1f\x7f\x85\r\n\t", "\x01\x1f\x7f\x85\r\n\t"),
    "quotes": (
        "'; DROP TABLE crawl_jobs; -- \" %s %(id)s :id $1 ?",
        "'; DROP TABLE crawl_jobs; -- \" %s %(id)s :id $1 ?",
    ),
    "empty": ("", ""),
}


@pytest.fixture(params=ODD)
def odd(request: pytest.FixtureRequest) -> tuple[str, str]:
    given, kept = ODD[request.param]
    return given, kept


def test_odd_text_in_a_job(database: Database, odd: tuple[str, str]) -> None:
    given, kept = odd
    job = queued(
        database,
        payload={"text": given, given + "key": [given, {"deep": given}]},
        metadata={"text": given},
        request_url=given,
        tenant=given,
        dedupe_key=given,
    )
    assert job.payload == {"text": kept, kept + "key": [kept, {"deep": kept}]}
    assert (job.metadata, job.request_url, job.tenant, job.dedupe_key) == ({"text": kept}, kept, kept, kept)
    again, new = jobs.enqueue(database, NewJob("page", {}, tenant=given, dedupe_key=given))
    assert (again.id, new) == (job.id, False)
    jobs.note(database, job.id, {"note": given})
    assert jobs.get(database, job.id).metadata == {"note": kept}


def test_a_nul_deep_in_a_value(database: Database) -> None:
    value: Any = "a\x00b"
    for _ in range(700):
        value = [value]
    job = queued(database, payload={"deep": value, "escape": "\\u0000\x00"})
    kept = job.payload["deep"]
    while isinstance(kept, list):
        (kept,) = kept
    assert (kept, job.payload["escape"]) == (f"a{REPLACED}b", f"\\u0000{REPLACED}")


def test_odd_text_about_an_attempt(database: Database, odd: tuple[str, str]) -> None:
    given, kept = odd
    job = running(database)
    logs.append(database, [logs.NewLine(job.id, 1, "error", given, database.now())])
    assert logs.tail(database, job.id)[0].message == kept
    finished(database, job, End.PERMANENT, reason="x" + given, message="y" + given)
    now = jobs.get(database, job.id)
    assert (now.exit_reason, now.error_message) == ("x" + kept, "y" + kept)


def test_odd_text_in_a_checkpoint(database: Database, odd: tuple[str, str]) -> None:
    given, kept = odd
    job = running(database)
    escaped, plain = json.dumps({"t": given}), json.dumps({"t": given}, ensure_ascii=False)
    counted = urls.record(
        database,
        job,
        Checkpoint(
            [url(1), url(2), url(3, state="skipped", reason="trap", detail=given)],
            [settled(1), settled(2, "failed", reason="crash", detail=given)],
            [result(1, data=escaped, metadata=plain), result(2, data=plain, metadata=escaped)],
            live={"t": given},
        ),
    )
    assert counted.live == {"t": kept}
    for each in results.every(database, job.id):
        assert each.data == each.metadata == {"t": kept}
    assert [each.detail for each in urls.page(database, job.id)] == [None, kept, kept]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_are_not_json_are_refused(database: Database, number: float) -> None:
    with pytest.raises(UsageError, match="not JSON"):
        jobs.enqueue(database, NewJob("page", {"n": number}))
    assert jobs.page(database) == []


def test_numbers_keep_their_value(database: Database) -> None:
    payload = {"n": [0, -1, 2**62, 10**30, 1.5, 1e-7, 1e20, 0.1]}
    assert queued(database, payload=payload).payload == payload


def test_a_huge_payload(database: Database) -> None:
    payload = {"urls": [f"https://example.com/{'ü' * 50}/{number}" for number in range(20_000)]}
    job = queued(database, payload=payload)
    assert job.payload == payload
    assert jobs.claim_one(database, "w1", "h", job.id).payload == payload


def test_a_huge_result(database: Database) -> None:
    job = running(database)
    text = "wörter und zahlen 123\n" * 200_000
    urls.record(database, job, Checkpoint([url(1)], [settled(1)], [result(1, data=json.dumps({"markdown": text}))]))
    found = results.by_url_id(database, job.id, 1)
    assert found is not None
    assert found.data["markdown"] == text
