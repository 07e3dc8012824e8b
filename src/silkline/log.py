"""The log of Silkline's programs: one line for each event, on stderr, as text for people or as JSON for programs.

docs/reference/log.md describes the fields. No line contains a secret: passwords in URLs are hidden always, and the
texts that were given to `hide` wherever they occur.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final

from silkline.model.redaction import cleaned, without_password, without_secrets

JOB_LOGGER: Final = "silkline.job"
FIELDS: Final = {
    "id": "The number of the line, which only grows, to read on from here. Only where lines come from the database.",
    "at": "The time, in UTC.",
    "level": "debug, info, warning, error or critical.",
    "logger": "The part of Silkline that wrote the line; `silkline.job` for the log of a job.",
    "message": "The text of the line.",
    "pid": "The process that wrote the line. Lines of the log of a job do not have it.",
    "worker": "The id of the worker, as in `silkline workers`.",
    "job": "The id of the job.",
    "attempt": "The number of the attempt of the job.",
    "shard": "The number of the shard, for a job that is a shard of a crawl.",
    "request": "The id of the request to the API, as in the header X-Request-ID of its answer.",
    "event": "A name for lines that have `data`. It does not change between versions.",
    "data": "The numbers in the message, by name.",
    "error": "The traceback, for an unexpected error.",
}
"""The fields of a line in JSON, in their order. A field without a value is left out."""
EVENTS: Final = {
    "progress": "Every half minute: `pages`, `rate` (pages a second since the last such line), `queued`, `in_flight`, "
    "`failed` and `skipped` by reason, and `processes` by role, each with `memory` (bytes) and `open_files`.",
    "depth": "All URLs up to `depth` are settled; `found` is the number of URLs to fetch at the next depth.",
    "slow_hosts": "`hosts` that the crawl waits for most, with the fields of `GET /v1/jobs/ID/hosts`.",
    "summary": "The end of an attempt of a crawl: URLs by state, `bytes`, `seconds`, `rate`, and `reasons` by state.",
}
"""The values of the field `event`, and what `data` contains."""
_IDS: Final = ("job", "attempt", "shard", "request")

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the request that the API is answering."""


class _Shared:
    """What all lines of this process share."""

    def __init__(self) -> None:
        self.fields: Mapping[str, Any] = {}
        self.secrets: tuple[str, ...] = ()


_shared = _Shared()


class TextLines(logging.Formatter):
    """One line of text. Control characters from crawled data must not reach a terminal."""

    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        found = [(name, value) for name in _IDS if (value := _field(record, name)) not in (None, "")]
        ids = [f"{name}={value}" for name, value in found if f"{name} {value}" not in text]
        text = f"{text} [{' '.join(ids)}]" if ids else text
        return "".join(
            char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in clean(text)
        )


class JsonLines(logging.Formatter):
    """One JSON object for each line."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC)
        more = {name: _field(record, name) for name in (*_IDS, "event", "data")}
        more["error"] = self.formatException(record.exc_info) if record.exc_info else None
        own = {name: value for name, value in more.items() if value is not None}
        fields = {"pid": record.process, **_shared.fields, **own}
        return json_line(at, record.levelname.lower(), record.name, record.getMessage(), **fields)


def json_line(at: datetime, level: str, logger: str, message: str, **more: Any) -> str:
    """One line in JSON, without secrets."""
    values = {"at": stamp(at), "level": level, "logger": logger, "message": message, **more}
    return json.dumps(cleaned(with_values(values), clean), default=str)


def with_values(line: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a line that have a value, in their order. Number 0 is one, an empty text is none."""
    return {name: line[name] for name in FIELDS if line.get(name) not in (None, "", {})}


def stamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def level_named(name: str) -> int:
    """The level for a name in the settings: debug, info, warning or error."""
    return logging.getLevelNamesMapping()[name.upper()]


def set_up(level: int = logging.INFO, format: str = "text") -> None:
    handler = logging.StreamHandler(sys.stderr)
    text = TextLines("%(asctime)sZ %(levelname)-7s %(name)s: %(message)s", datefmt="%Y-%m-%dT%H:%M:%S")
    handler.setFormatter(JsonLines() if format == "json" else text)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)


def in_every_line(**fields: Any) -> None:
    """Add these fields to every line of this process, in JSON."""
    _shared.fields = {**_shared.fields, **fields}


def hide(secrets: Iterable[str]) -> None:
    """From now on show `***` instead of these texts, in every line of this process."""
    found = {*_shared.secrets, *filter(None, secrets)}
    _shared.secrets = tuple(sorted(found, key=len, reverse=True))


def clean(text: str) -> str:
    """The text without secrets."""
    return without_secrets(without_password(text), list(_shared.secrets))


def _field(record: logging.LogRecord, name: str) -> Any:
    given = getattr(record, name, None)
    return request_id.get() if name == "request" and not given else given
