"""Decides which requests of a page in a browser get the headers and cookies that the job has for their origin.

Only requests that the page itself sends to its own origin: the document of the frame and of all frames above it have
that origin, and no other origin has redirected the request. Otherwise a frame or a page of another site could act with
the account of the job. What is not certain gets nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from silkline.fetch.origin import origin_of

Pairs = tuple[tuple[str, str], ...]

_MOST_FRAMES: Final = 1000


class Credentials:
    """Gets the events about the frames of one page. `page`: its URL; `frame`: its main frame, which has no parent."""

    def __init__(self, page: str, by_origin: Mapping[str, Pairs]) -> None:
        self._origin = origin_of(page)
        self._headers = by_origin.get(self._origin, ()) if self._origin else ()
        self.frame = ""
        self._parents: dict[str, str] = {}
        self._foreign: set[str] = set()
        """Frames that have had, or asked for, a document of another origin. They are not trusted again."""
        self._left: set[str] = set()
        """Requests that went to another origin. A redirect may lead back."""

    def heard(self, method: str, params: Mapping[str, Any]) -> None:
        if not self._headers:
            return
        match method:
            case "Page.frameAttached" if len(self._parents) < _MOST_FRAMES:
                self._parents[params["frameId"]] = params["parentFrameId"]
            case "Page.frameDetached" if params.get("reason") != "swap":
                self._parents.pop(params["frameId"], None)
                self._foreign.discard(params["frameId"])
            case "Page.frameNavigated" if params["frame"].get("securityOrigin") != self._origin:
                self._distrust(params["frame"]["id"])

    def added(self, params: Mapping[str, Any]) -> list[dict[str, str]] | None:
        """All headers of a request that was paused, with those of the job. None: it gets none of the job."""
        if not self._headers:
            return None
        request = params["request"]
        # Workers have no `networkId`; requests with CORS have no `redirectedRequestId`.
        chain = {params[name] for name in ("networkId", "redirectedRequestId") if name in params}
        if origin_of(request["url"]) != self._origin:
            self._left |= chain | {params["requestId"]}
            if params.get("resourceType") == "Document":
                self._distrust(params.get("frameId", ""))
            return None
        given = {name.lower(): value for name, value in request["headers"].items()}
        if (
            request["method"] == "OPTIONS"  # a preflight has no credentials
            or given.get("origin", self._origin) != self._origin
            or chain & self._left
            or not self._is_own(params.get("frameId", ""))
        ):
            self._left |= chain | {params["requestId"]}
            return None
        # An explicit Referer would go to other origins too, after a redirect.
        given.pop("referer", None)
        for name, value in self._headers:
            kept = given.get("cookie") if name.lower() == "cookie" else None
            given[name.lower()] = f"{value}; {kept}" if kept else value
        return [{"name": name, "value": value} for name, value in given.items()]

    def _is_own(self, frame: str) -> bool:
        for _ in range(_MOST_FRAMES):
            if not frame or frame in self._foreign:
                return False
            if frame == self.frame:
                return True
            frame = self._parents.get(frame, "")
        return False

    def _distrust(self, frame: str) -> None:
        if frame in self._parents:  # the others get nothing anyway; a main frame that leaves ends the page
            self._foreign.add(frame)
