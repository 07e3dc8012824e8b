"""The kind `extract`: reads the stored pages of another job again, for other fields or other content. No request.

The pages come from the HTML that the job kept, or from its WARC files on this machine. They have the same ids in the
ledger as in that job, so a new attempt continues after the last one that is stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import uvloop

from silkline.crawl.field_counts import FieldCounts, check_fields
from silkline.crawl.guarded_reader import GuardedReader
from silkline.crawl.kept_pages import KeptPage, PageOpener
from silkline.crawl.outcomes import public_headers
from silkline.crawl.page_hooks import HOOK_FAILED, installed_hooks
from silkline.crawl.plan import Plan
from silkline.crawl.plan_from_spec import plan_of
from silkline.crawl.reading import Body, Reading
from silkline.errors import NotFound, Permanent
from silkline.kinds.page import TUNING
from silkline.kinds.reader_limits import limits_of, reader_for
from silkline.model.database import Database
from silkline.model.fetched import READER_DIED
from silkline.model.job import End
from silkline.model.kind import Context, KindSettings
from silkline.model.ledger import DONE, FAILED, SKIPPED, Checkpoint, NewResult, NewUrl, Url
from silkline.model.spec import Extracting, ExtractSpec, Shaping, SiteSpec
from silkline.model.url import host_of, url_key
from silkline.reading_marks import ReadingMarks
from silkline.store import html, jobs, results, urls
from silkline.store.page_cache import HIDDEN_KEYS
from silkline.store.results import Result
from silkline.warc_files import folder_of, newest_records

BATCH: Final = 20
_ROWS: Final = 5_000
NOT_OPENED: Final = "html_damaged"
NOT_KEPT: Final = "not_kept"
_FETCHING: Final = frozenset(
    {"http_status", "content_type", "bytes", "depth", "seconds", "first_byte", "redirected_from", "rendered"}
)
"""What is copied from the metadata of the page."""
_encode = msgspec.json.Encoder().encode


class StoredPage(NamedTuple):
    """A page of the other job: its id in the ledger, and the page, or why it cannot be read.

    `url`: the URL of a page from an archive, where another URL may have the same id (`warc_files.Record`).
    """

    url_id: int
    page: KeptPage | str
    url: str | None = None


def run(context: Context[ExtractSpec]) -> End | None:
    spec: ExtractSpec = context.spec
    database = context.progress.database
    try:
        source = jobs.outline(database, spec.job)
    except NotFound as error:
        raise Permanent(f"there is no job {spec.job}") from error
    data = Path(context.settings.data)
    if not has_pages(database, data, source.id):
        raise Permanent(f"job {source.id} kept no pages: run it again with --keep-html, or with --warc on this machine")
    return uvloop.run(_Extract(context, plan_for(spec, context.settings), source.id, data).run())


def plan_for(spec: ExtractSpec, settings: KindSettings) -> Plan:
    """The plan for reading stored pages."""
    shared = {name: getattr(spec, name) for name in (*Extracting.model_fields, *Shaping.model_fields)}
    like = SiteSpec.model_construct(**shared, scope="any")
    plan = plan_of(like, fetchers=1, concurrency=1, tuning=limits_of(settings, TUNING))
    return msgspec.structs.replace(plan, by_name=True, hooks=installed_hooks())


def has_pages(database: Database, data: Path, job_id: str) -> bool:
    """Whether the pages of a job can be read again on this machine."""
    return bool(html.page(database, job_id, wanted=1)) or folder_of(data, job_id).is_dir()


def stored_pages(database: Database, data: Path, job_id: str, after: int = 0) -> Iterator[StoredPage]:
    """The pages of a job after an id, in the order of their ids; those of WARC files in the order of writing."""
    found = html.page(database, job_id, after=after, wanted=BATCH)
    if not found and not html.page(database, job_id, wanted=1):
        yield from _archived(data, job_id, after)
    opener = PageOpener(lambda id: html.dictionary(database, job_id, id))
    while found:
        for kept in found:
            try:
                yield StoredPage(kept.url_id, opener.open(kept))
            except ValueError as error:
                yield StoredPage(kept.url_id, str(error))
        found = html.page(database, job_id, after=found[-1].url_id, wanted=BATCH)


def _archived(data: Path, job_id: str, after: int) -> Iterator[StoredPage]:
    """If two attempts fetched a page, its last record is used."""
    for found in newest_records(data, job_id):
        if found.url_id > after:
            record = found.record
            headers = {name.lower(): value for name, value in record.http_headers.headers}
            kind, _, charset = headers.get("content-type", "").partition(";")
            named = charset.partition("charset=")[2].split(";")[0].strip().strip("\"'").lower()
            tag = headers.get("x-robots-tag", "")
            shown = public_headers(headers)
            page = KeptPage(kind.strip().lower(), named, tag, "", shown, record.payload)
            yield StoredPage(found.url_id, page, found.url)


class _Extract:
    """One attempt."""

    def __init__(self, context: Context[ExtractSpec], plan: Plan, source_id: str, data: Path) -> None:
        self._context = context
        self._plan = plan
        self._source = source_id
        self._data = data
        self._database = context.progress.database
        self._counts = FieldCounts([field.name for field in plan.fields])

    async def run(self) -> End | None:
        context = self._context
        job_id = context.progress.job.id
        self._counts.load(urls.counts(self._database, job_id).live)
        done = self._ids()
        reader = reader_for(context, self._plan)
        try:
            batch: list[StoredPage] = []
            for page in stored_pages(self._database, self._data, self._source):
                if context.control.order:
                    return context.control.order
                if page.url_id in done:
                    continue
                batch.append(page)
                if len(batch) == BATCH:
                    await self._store(reader, batch)
                    batch = []
            await self._store(reader, batch)
        finally:
            reader.close()
        self._tell_what_is_missing()
        context.log.info("read %d pages of job %s again", urls.counts(self._database, job_id).done, self._source)
        check_fields(self._plan, self._counts, context.log)
        return None

    def _ids(self) -> set[int]:
        """The pages that this job has recorded."""
        return {row.id for rows in _ledger(self._database, self._context.progress.job.id) for row in rows}

    def _tell_what_is_missing(self) -> None:
        """Record the pages of the other job that could not be read again, because nothing of them was kept."""
        read = self._ids()
        missing = 0
        for rows in _ledger(self._database, self._source, state=DONE):
            found = [
                NewUrl(row.id, row.url_key, row.url, row.host, 0, SKIPPED, NOT_KEPT)
                for row in rows
                if row.id not in read
            ]
            if found:
                self._context.progress.record(Checkpoint(found=found, results=[], live=self._counts.live()))
            missing += len(found)
        if missing:
            self._context.log.warning("of %d pages of job %s nothing was kept here", missing, self._source)

    async def _store(self, reader: GuardedReader, batch: list[StoredPage]) -> None:
        """Read some pages and record them in one checkpoint."""
        if not batch:
            return
        found: list[NewUrl] = []
        stored: list[NewResult] = []
        for url_id, page, url in batch:
            old = results.by_url_id(self._database, self._source, url_id)
            if old is None or url not in (None, old.final_url):  # it was fetched, but not stored
                continue
            reading = await _read(reader, self._plan, old, page)
            state = DONE if reading.reason is None else FAILED
            if reading.reason not in (None, READER_DIED, HOOK_FAILED, NOT_OPENED):
                state = SKIPPED
            detail = (reading.detail or "")[:500] or None
            host = host_of(old.final_url)
            found.append(NewUrl(url_id, url_key(old.final_url), old.final_url, host, 0, state, reading.reason, detail))
            if reading.reason is None:
                stored.append(self._result(old, reading))
                self._counts.add(reading.tally)
        self._context.progress.record(Checkpoint(found=found, results=stored, live=self._counts.live()))

    def _result(self, old: Result, reading: Reading) -> NewResult:
        about = {name: value for name, value in old.metadata.items() if name in _FETCHING}
        about |= {"content": self._plan.content, "extracted_from": self._source}
        about["fetched_at"] = old.metadata.get("fetched_at") or old.created_at.isoformat()
        key, final_key = HIDDEN_KEYS  # an old page must not look new
        metadata = _encode(about).decode()
        return NewResult(
            old.url_id, old.original_url, key, old.final_url, final_key, reading.data, success=True, metadata=metadata
        )


def read_one(database: Database, result: Result, plan: Plan) -> Reading | None:
    """Read the kept page of one result in a process of its own, without a job. None: its HTML was not kept."""
    kept = html.by_url_id(database, result.job_id, result.url_id)
    if kept is None:
        return None
    page = PageOpener(lambda id: html.dictionary(database, result.job_id, id)).open(kept)

    async def read() -> Reading:
        reader = GuardedReader(plan, ReadingMarks.open(""), isolate_all=True, owns_marks=True)
        try:
            return await _read(reader, plan, result, page)
        finally:
            reader.close()

    return uvloop.run(read())


async def _read(reader: GuardedReader, plan: Plan, old: Result, page: KeptPage | str) -> Reading:
    if isinstance(page, str):
        return Reading(old.url_id, NOT_OPENED, page)
    body = Body(
        old.url_id,
        old.final_url,
        page.body,
        page.content_type,
        page.charset,
        page.robots_tag,
        base=page.base,
        headers=page.headers if plan.wants_headers else {},
    )
    return await reader.reading_of(body)


def _ledger(database: Database, job_id: str, state: str | None = None) -> Iterator[list[Url]]:
    """All URLs of a job, in lists."""
    after = 0
    while rows := urls.page(database, job_id, after=after, wanted=_ROWS, state=state):
        yield rows
        after = rows[-1].id
