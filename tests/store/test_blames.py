"""Inputs that ended an attempt: each excuses it once or twice, and not for ever."""

from dataclasses import replace

from silkline.model.database import Database
from silkline.model.job import Decision, Job, NewJob, Status, Verb, Wish
from silkline.store import blames, job_removal, jobs

URL = "https://example.com/bomb"


def claimed(database: Database) -> Job:
    job, _ = jobs.enqueue(database, NewJob("site", {}))
    return jobs.claim_one(database, "worker", "host", job.id)


def test_a_new_input_excuses_the_attempt_and_is_remembered(database: Database) -> None:
    job = claimed(database)
    assert blames.blame(database, job, [URL, "https://example.com"])
    assert blames.listed(database, job.id) == [("https://example.com", 1), (URL, 1)]


def test_no_input_no_excuse(database: Database) -> None:
    assert not blames.blame(database, claimed(database), [])


def test_blaming_twice_for_one_attempt_is_the_same_as_once(database: Database) -> None:
    job = claimed(database)
    assert blames.blame(database, job, [URL])
    assert blames.blame(database, job, [URL])
    assert blames.listed(database, job.id) == [(URL, 1)]


def test_an_input_excuses_two_attempts(database: Database) -> None:
    job = claimed(database)
    later = [replace(job, attempt=number) for number in (1, 2, 3)]
    assert [blames.blame(database, each, [URL]) for each in later] == [True, True, False]
    assert blames.listed(database, job.id) == [(URL, 2)]


def test_after_many_inputs_a_crash_counts_again(database: Database) -> None:
    job = claimed(database)
    excused = [
        blames.blame(database, replace(job, attempt=number), [f"{URL}/{number}"])
        for number in range(1, blames.MOST_EXCUSED + 3)
    ]
    assert excused == [True] * blames.MOST_EXCUSED + [False] * 2


def test_what_an_attempt_adds_never_lowers_a_number(database: Database) -> None:
    job = claimed(database)
    blames.add(database, job, [(URL, 2)])
    blames.add(database, job, [(URL, 1)])
    assert blames.listed(database, job.id) == [(URL, 2)]


def test_a_job_that_is_deleted_takes_its_blames_along(database: Database) -> None:
    job = claimed(database)
    blames.add(database, job, [(URL, 1)])
    jobs.wish(database, job.id, Verb.CANCEL)
    end = Decision(Status.CANCELLED, Wish.CANCEL, database.now(), 0, 0, "cancelled", None)
    assert jobs.rescue(database, jobs.get(database, job.id), end)
    job_removal.delete(database, job.id)
    assert blames.listed(database, job.id) == []
