"""The results of a job as a file to download, in every format of the command line."""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as InPath
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from silkline.api.answer_limit import PART
from silkline.api.answer_models import problems
from silkline.api.downloads import Downloads
from silkline.api.problems import Problem
from silkline.config import Settings
from silkline.export.download import DOWNLOADS, download, offered
from silkline.export.markdown_chunks import CHUNK_SIZE, LARGEST, SMALLEST
from silkline.model.database import Database
from silkline.model.job import Job
from silkline.model.url import origin_of
from silkline.page_files import TYPES, files_named, stored_files
from silkline.store import jobs, results

UrlId = Annotated[int, InPath(ge=1, lt=2**62, description="The number of the URL in the ledger: `url_id` of a result.")]
NEEDS = {
    "parquet": "Parquet needs pyarrow on the server: the operator must install silkline[parquet]",
    "warc": "this job has no WARC here: the job needs the option warc, the server needs warcio, and the file is only "
    "on the machine that ran the job",
}


class ExportQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    format: Literal["jsonl", "csv", "md", "parquet", "sitemap", "warc", "links", "chunks"] = Field(
        "jsonl",
        description="`md` is a zip of Markdown files, `links` has a line for each link, `chunks` for each part of the "
        "content. Not every server supports `parquet` and `warc`.",
    )
    chunk_size: int = Field(
        CHUNK_SIZE, ge=SMALLEST, le=LARGEST, description="The most characters of a chunk, for `chunks`."
    )


class ExportRoutes:
    def __init__(self, database: Database, settings: Settings, downloads: Downloads) -> None:
        self._database = database
        self._downloads = downloads
        self._settings = settings
        self.router = APIRouter(prefix="/v1/jobs/{id}", tags=["results and ledger"])
        binary = {"schema": {"type": "string", "format": "binary"}}
        content: dict[str, Any] = {kind.partition(";")[0]: binary for _, kind in DOWNLOADS.values()}
        self.router.add_api_route(
            "/export",
            self.export,
            methods=["GET"],
            summary="The results as a file to download",
            responses={
                200: {"description": "The file.", "content": content},
                **problems("not-found", "too-many", "too-many-downloads"),
            },
            response_class=StreamingResponse,
        )
        self.router.add_api_route(
            "/files/{url_id}/{name}",
            self.file,
            methods=["GET"],
            summary="The screenshot or the PDF of a rendered page",
            responses={
                200: {"description": "The file.", "content": {each.media_type: binary for each in TYPES.values()}},
                **problems("not-found", "too-many", "too-many-downloads"),
            },
            response_class=StreamingResponse,
        )

    def file(self, request: Request, id: str, url_id: UrlId, name: Literal["screenshot", "pdf"]) -> Response:
        """`metadata.files` of a result names its files, and the machine that has them. Only that machine sends them."""
        result = results.by_url_id(self._database, jobs.outline(self._database, id).id, url_id)
        note = files_named(result.metadata).get(name) if result else None
        if result is None or note is None:
            raise Problem("not-found", f"the URL {url_id} of job {id} has no {name}")
        if note.error:
            raise Problem("not-found", f"this page has no {name}: {note.error}")
        path = stored_files(self._settings.data, result.job_id, url_id, result.metadata).get(name)
        if path is None:
            raise Problem("not-found", f"this {name} is not here: it is in the data directory of {note.host}")
        suffix, kind = TYPES[name]
        disposition = {"Content-Disposition": f'attachment; filename="{id[-8:]}-{url_id}{suffix}"'}
        return self._downloads.answer(request.scope, pieces_of(path), kind, disposition)

    def export(self, request: Request, id: str, query: Annotated[ExportQuery, Query()]) -> Response:
        """All results so far, in the order of discovery. The server writes the file while it sends it."""
        job = jobs.outline(self._database, id)
        if query.format not in offered(self._settings.data, id):
            raise Problem("invalid", NEEDS[query.format])
        suffix, kind = DOWNLOADS[query.format]
        name = file_name(job)
        size = query.chunk_size
        pieces = download(self._database, self._settings.data, id, query.format, name, chunk_size=size)
        disposition = {"Content-Disposition": f'attachment; filename="{name}{suffix}"'}
        return self._downloads.answer(request.scope, pieces, kind, disposition)


def pieces_of(path: Path) -> Generator[bytes, None, None]:
    with path.open("rb") as file:
        while piece := file.read(PART):
            yield piece


def file_name(job: Job) -> str:
    """A file name from the host and the id of the job, with characters that every system accepts."""
    host = origin_of(job.request_url or "").partition("://")[2]
    plain = re.sub(r"[^A-Za-z0-9.-]+", "_", host)[:80].strip("._-")
    return f"{plain or job.kind}-{job.id[-8:]}"
