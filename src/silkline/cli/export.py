"""Results as JSON lines, CSV and Markdown. A file appears whole or not at all."""

from __future__ import annotations

import csv
import dataclasses
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from silkline.cli.terminal import as_json, safe_lines
from silkline.errors import SilklineError
from silkline.store.results import Result

COLUMNS = ("original_url", "final_url", "success", "http_status", "title", "error", "created_at", "markdown")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class ExportFailed(SilklineError):
    """The results could not be written."""


def jsonl(results: Iterable[Result]) -> Iterator[str]:
    for result in results:
        yield as_json({field.name: getattr(result, field.name) for field in dataclasses.fields(result)})


def rows(results: Iterable[Result]) -> Iterator[str]:
    """CSV, the head first. No cell can be taken for a formula by a spreadsheet."""
    yield _row(COLUMNS)
    for result in results:
        facts = {**result.data, **result.metadata}
        facts |= {"original_url": result.original_url, "final_url": result.final_url}
        facts |= {"success": str(result.success).lower(), "created_at": result.created_at.isoformat()}
        yield _row(tuple("" if facts.get(name) is None else str(facts[name]) for name in COLUMNS))


def _row(cells: tuple[str, ...]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow([_cell(cell) for cell in cells])
    return line.getvalue().removesuffix("\n")


def _cell(text: str) -> str:
    harmless = f"'{text}" if text.startswith(_FORMULA) else text
    return safe_lines(harmless)


def markdown(results: Iterable[Result]) -> Iterator[str]:
    for result in results:
        if result.success:
            yield _page(result)


def _page(result: Result) -> str:
    """The Markdown of one page under a head that says where it is from."""
    head = {"url": result.final_url, "title": result.data.get("title") or "", "fetched": result.created_at.isoformat()}
    lines = [f"{name}: {as_json(value)}" for name, value in head.items()]
    text = safe_lines(str(result.data.get("markdown") or result.data.get("text") or ""))
    return "\n".join(["---", *lines, "---", "", text, ""])


FORMATS: dict[str, Callable[[Iterable[Result]], Iterator[str]]] = {"jsonl": jsonl, "csv": rows, "md": markdown}


def format_of(output: str | None) -> str:
    """What the name of a file asks for."""
    ending = Path(output).suffix.lstrip(".").lower() if output else ""
    return ending if ending in ("csv",) else "jsonl"


def to_file(results: Iterable[Result], form: str, output: str) -> int:
    """Write the results to a file, which is there when all of them are in it; how many."""
    counted = _Counted(results)
    target = Path(output)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with part.open("w", encoding="utf-8", errors="backslashreplace") as stream:
            for line in FORMATS[form](counted):
                stream.write(line + "\n")
        part.replace(target)
    except OSError as error:
        raise ExportFailed(f"{output} cannot be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
    return counted.number


def to_folder(results: Iterable[Result], output: str) -> int:
    """Write each page to a Markdown file of its own; how many."""
    folder, number = Path(output), 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for result in results:
            if result.success:
                (folder / file_name(result)).write_text(_page(result), encoding="utf-8", errors="backslashreplace")
                number += 1
    except OSError as error:
        raise ExportFailed(f"{output} cannot be written: {error.strerror}") from error
    return number


def file_name(result: Result) -> str:
    """A name that tells the page, in letters that every system takes; the number keeps names apart."""
    words = re.sub(r"[^a-z0-9]+", "-", result.final_url.partition("://")[2].lower()).strip("-")
    return f"{result.url_id:06d}-{words[:80].rstrip('-') or 'page'}.md"


class _Counted:
    """Results, counted as they go by."""

    def __init__(self, results: Iterable[Result]) -> None:
        self._results = results
        self.number = 0

    def __iter__(self) -> Iterator[Result]:
        for result in self._results:
            self.number += 1
            yield result
