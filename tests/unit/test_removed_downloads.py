"""A download or an event stream whose job is removed: a problem document before its first bytes, else an early end."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message

from silkline.api.auth import Caller
from silkline.api.caller_turns import GIVE_BACK, CallerTurns
from silkline.api.downloads import Downloads
from silkline.api.events import RETRY, Hub
from silkline.errors import NotFound
from silkline.export.download import download
from silkline.model.ledger import Checkpoint
from silkline.store import job_removal, urls
from silkline.store.opening import open_database
from tests.store.given import finished, result, running, settled, url
from tests.support.supervisors import PATIENCE


def sent_of(pieces: Generator[bytes, None, None], spec_version: str) -> list[Message]:
    """The messages of the answer. Raises what the pieces raise, if nothing was sent."""
    sent: list[Message] = []

    async def main() -> None:
        with ExitStack() as at_end:
            scope: dict[str, Any] = {"type": "http", "asgi": {"spec_version": spec_version}, "at_end": at_end}
            scope |= {"caller": Caller("one", "read"), "still_valid": still_valid, GIVE_BACK: no_turn}
            await Downloads(CallerTurns(most=1, most_each=1)).answer(scope, pieces, "text/plain")(scope, receive, send)

    async def still_valid() -> bool:
        return True

    def no_turn() -> None:
        """The request has none to give back."""

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    try:
        asyncio.run(main())
    except NotFound:
        assert sent == []
        raise
    return sent


def pieces_until_removed(*pieces: bytes) -> Generator[bytes, None, None]:
    yield from pieces
    raise NotFound("no job")


@pytest.mark.parametrize("spec_version", ["2.3", "2.4"])
def test_before_its_first_bytes_the_caller_gets_a_problem(spec_version: str) -> None:
    for pieces in ((), (b"", b"")):
        with pytest.raises(NotFound):
            sent_of(pieces_until_removed(*pieces), spec_version)


@pytest.mark.parametrize("spec_version", ["2.3", "2.4"])
def test_after_its_first_bytes_it_stays_incomplete(spec_version: str) -> None:
    sent = sent_of(pieces_until_removed(b"some"), spec_version)
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert sent[-1]["more_body"]


@pytest.mark.parametrize("form", ["jsonl", "csv", "md", "sitemap", "chunks"])
@pytest.mark.parametrize("read", [0, 1])
def test_an_export_says_that_its_job_was_removed(tmp_path: Path, form: str, read: int) -> None:
    with closing(open_database(f"sqlite:///{tmp_path / 'silkline.db'}")) as database:
        job, ids = running(database, kind="extension"), range(1, 4)
        stored = [result(id, data='{"markdown": "words"}', final_url=f"https://example.com/{id}") for id in ids]
        urls.record(database, job, Checkpoint([url(id) for id in ids], [settled(id) for id in ids], stored))
        finished(database, job)
        with closing(download(database, tmp_path, job.id, form, "folder")) as pieces:
            for _ in range(read):
                next(pieces)
            job_removal.delete(database, job.id)
            with pytest.raises(NotFound):
                list(pieces)


def test_a_file_that_was_removed_with_the_job_is_no_error_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_database(f"sqlite:///{tmp_path / 'silkline.db'}")) as database:
        job = running(database, kind="extension")
        urls.record(database, job, Checkpoint([url(1)], [settled(1)], [result(1)]))
        finished(database, job)

        def missing(*_: object) -> object:
            raise FileNotFoundError("page.png")

        def removed(*_: object) -> object:
            job_removal.delete(database, job.id)
            return missing()

        for files, error in ((missing, FileNotFoundError), (removed, NotFound)):
            monkeypatch.setattr("silkline.export.download.stored_files", files)
            with pytest.raises(error):
                list(download(database, tmp_path, job.id, "md", "folder"))


def test_an_event_stream_ends_if_its_job_is_removed_while_it_starts(tmp_path: Path) -> None:
    """Its first events are read after the answer began: an error would only be a traceback in the log."""

    async def main(hub: Hub, id: str) -> list[bytes]:
        async def still_valid() -> bool:
            return True

        frames = []
        async for frame in hub.follow(id, None, still_valid, "one"):
            if not frames:
                feed = hub._feeds[id] = hub._new_feed(id)  # the first look sees the job, the next one does not
                await feed.first_look()
                job_removal.delete(database, id)
            frames.append(frame)
        return frames

    with closing(open_database(f"sqlite:///{tmp_path / 'silkline.db'}")) as database:
        job = running(database, kind="extension")
        finished(database, job)
        frames = asyncio.run(asyncio.wait_for(main(Hub(database), job.id), PATIENCE))
    assert frames[0] == RETRY
    assert not any(b"event: status" in frame for frame in frames)
