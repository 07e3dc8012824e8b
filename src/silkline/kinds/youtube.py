"""The kind `youtube`: transcripts of videos, playlists or channels, with title, channel and chapters.

Each video is a URL of the ledger and is settled in its own checkpoint. If YouTube blocks us, the job is retried later
and continues from there. If no video has a transcript, the job fails with the reason.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec

from silkline.errors import Permanent, Temporary
from silkline.kinds import video
from silkline.kinds.captions import Captions, CaptionsRefused, videos_of
from silkline.kinds.foreign_items import Unreadable, result_json, understood
from silkline.model.fetched import BAD_RESPONSE
from silkline.model.job import End
from silkline.model.kind import Context
from silkline.model.ledger import DONE, FAILED, Checkpoint, NewResult, NewUrl, QueuedUrl, Settled
from silkline.model.spec import YoutubeSpec
from silkline.model.url import canonical, host_of, url_key
from silkline.store import urls
from silkline.store.page_cache import HIDDEN_KEYS

_LOOK: Final = 0.25
_encode = msgspec.json.Encoder().encode


def run(context: Context[YoutubeSpec]) -> End | None:
    job = YoutubeJob(context)
    try:
        job.run()
    except Ordered:
        return context.control.order
    finally:
        job.close()
    return None


class Ordered(Exception):
    """An order to end the job arrived."""


class YoutubeJob:
    """One attempt."""

    def __init__(self, context: Context[YoutubeSpec]) -> None:
        self._context = context
        self._spec = context.spec
        self._base = context.settings.youtube_url
        self._captions = Captions(self._base)
        self._refusals: list[str] = []

    def run(self) -> None:
        progress = self._context.progress
        if not urls.last_id(progress.database, progress.job.id):
            self._open_ledger()
        while waiting := urls.queued(progress.database, progress.job.id, wanted=100):
            for row in waiting:
                self._transcribe(row)
        counts = urls.counts(progress.database, progress.job.id)
        self._context.log.info("%d transcripts, %d videos without a transcript", counts.done, counts.failed)
        if not counts.done and self._refusals:
            raise Permanent(self._refusals[0])

    def close(self) -> None:
        self._captions.close()

    def _open_ledger(self) -> None:
        """Record every requested video, in one checkpoint."""
        videos: list[str] = []
        for url in self._spec.all_urls():
            found = video.subject(url)
            if found is None:
                raise Permanent(f"{url} is not a video, playlist or channel of YouTube")
            videos += [found.video] if found.video else self._listed(url)
        addresses = [canonical(video.watch_url(one)) or "" for one in dict.fromkeys(videos)][: self._spec.limit]
        if not addresses:
            raise Permanent("the playlist or channel has no visible videos")
        rows = [NewUrl(id, url_key(url), url, host_of(url), 0) for id, url in enumerate(addresses, 1)]
        self._context.progress.record(Checkpoint(found=rows))

    def _listed(self, url: str) -> list[str]:
        try:
            found: list[str] = self._aside(understood, partial(videos_of, url, self._spec.limit, self._base))
        except Unreadable as error:
            raise Permanent(f"{url}: the list cannot be read: {error}") from error
        return found

    def _transcribe(self, row: QueuedUrl) -> None:
        try:
            data = self._aside(understood, partial(self._read, row.url), CaptionsRefused)
        except CaptionsRefused as refusal:
            if refusal.passing:
                raise Temporary(f"{row.url}: {refusal}") from refusal
            self._refuse(row, refusal.reason, str(refusal))
        except Unreadable as error:
            self._refuse(row, BAD_RESPONSE, f"the answer of YouTube cannot be read: {error}")
        else:
            self._record(row, DONE, None, None, data)

    def _read(self, url: str) -> str:
        """The result of one video."""
        wanted, spec = video.subject(url), self._spec
        name = wanted.video if wanted is not None and wanted.video else ""
        details, transcript = self._captions.transcript(name, spec.languages, generated=spec.generated)
        return result_json(video.data_of(details, transcript))

    def _refuse(self, row: QueuedUrl, reason: str, detail: str) -> None:
        if reason == BAD_RESPONSE:
            self._context.log.warning("%s: %s", row.url, detail)
        self._refusals.append(f"{row.url}: {detail}")
        self._record(row, FAILED, reason, detail, "{}")

    def _record(self, row: QueuedUrl, state: str, reason: str | None, detail: str | None, data: str) -> None:
        """A transcript is not a page: the cache must not find it."""
        key, final_key = HIDDEN_KEYS
        metadata = "{}" if reason is None else _encode({"error": reason, "detail": detail}).decode()
        result = NewResult(row.id, row.url, key, row.url, final_key, data, reason is None, metadata)
        settled = Settled(row.id, state, reason, detail, row.attempts + 1)
        self._context.progress.record(Checkpoint(settled=[settled], results=[result]))

    def _aside(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function that uses the network in a thread, so that orders are obeyed meanwhile."""
        outcome: list[Any] = []

        def target() -> None:
            try:
                outcome.append((work(*arguments), None))
            except BaseException as error:  # passed to the calling thread
                outcome.append((None, error))

        thread = threading.Thread(target=target, name="youtube", daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(_LOOK)
            self._context.progress.report()
            if self._context.control.order:
                raise Ordered
        answer, error = outcome[0]
        if error is not None:
            raise error
        return answer
