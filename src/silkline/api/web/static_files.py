"""Serves our own files from memory, by their exact names.

Callers need no token for them, so a request reads no folder and resolves no path: it is one look-up in a dictionary.
"""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    media_type: str
    etag: str


class StaticFiles:
    """The files that a folder has now, also those of its subfolders."""

    def __init__(self, folder: Path) -> None:
        self._files = dict(_files_in(folder))

    async def serve(self, request: Request) -> Response:
        """A browser may keep a file, and asks whether it changed."""
        file = self._files.get(request.path_params["name"])
        if file is None:
            raise HTTPException(404)
        headers = {"ETag": file.etag, "Cache-Control": "no-cache"}
        # The quotes belong to the ETag, so it is no part of another one in the list.
        if file.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(file.content, headers=headers, media_type=file.media_type)


def _files_in(folder: Path) -> Iterator[tuple[str, _File]]:
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            media_type = mimetypes.guess_type(path.name)[0] or "text/plain"
            etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            yield path.relative_to(folder).as_posix(), _File(content, media_type, etag)
