"""An external worker or a plug-in may store any JSON as a result: no page, no export and no answer fails because of it.

The names are those that our own code reads, so each of them gets values of every type.
"""

import json
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from silkline.api.answer_models import to_json
from silkline.api.app import create_app
from silkline.api.events import Hub
from silkline.api.mcp import _page_text as page_text
from silkline.api.mcp import _result_line as result_line
from silkline.cli.content_options import little_kept
from silkline.cli.explain import _result_lines as result_lines
from silkline.cli.page_file_options import say_files
from silkline.cli.session import Session
from silkline.config import Settings
from silkline.export.download import DOWNLOADS
from silkline.model.database import Database
from silkline.model.job import Job, NewJob
from silkline.model.ledger import DONE, FAILED, Checkpoint, NewResult, NewUrl, Settled
from silkline.model.result_fields import DATA, METADATA
from silkline.model.url import url_key
from silkline.store import jobs, results, urls
from silkline.store.opening import open_database
from silkline.store.results import Result
from silkline.store.url_view import result_view
from tests.support.effort import examples

URL = "https://a.test/"
FIELDS = {
    "price": {"css": "b", "type": "price"},
    "day": {"css": "i", "type": "date"},
    "tags": {"css": "u", "many": True, "type": "number"},
    "row": {"css": "s", "type": "boolean"},
}
READ_IN_DATA = (
    *DATA,
    *("files", "fields", "rows", "field_errors", "outlinks", "headings", "anchors", "headers", "hreflang", "images"),
    *("structured", "extraction", "kept", "words", "rule", "canonical", "truncated", "sitemap", "priority", "feed"),
)
READ_IN_METADATA = (
    *METADATA,
    *("files", "first_byte", "render", "render_seconds", "rendered_by", "depth", "skipped", "cached", "cached_from"),
    *("fetched_at", "hook_errors", "extraction", "tries"),
)
KEYS_INSIDE = (
    *("screenshot", "pdf", "bytes", "host", "error", "type", "url", "text", "rel", "field", "row", "raw"),
    *(*FIELDS, "price_currency", "kept", "words", "rule", "confidence"),
)
leaves = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False)),
    *(st.sampled_from([10**30, -(10**30), 2**63, 10**400, 1e308]), st.text(max_size=6)),
    st.sampled_from(["2026-01-01", "# a\n\nb", "\x00", "0001-01-01T00:00+23:59"]),
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS_INSIDE) | st.text(max_size=3), inner)
    ),
    max_leaves=8,
)


def any_of(names: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(names) | st.text(max_size=4), values, max_size=12)


def deep(levels: int) -> Any:
    found: Any = 1
    for _ in range(levels):
        found = [found]
    return found


class Place:
    """A server without a socket, and the command, on one database."""

    def __init__(self, folder: Path, database: Database) -> None:
        self.settings = Settings(data=folder)
        self.database = database
        app = create_app(self.settings, database, Hub(database), "127.0.0.1", 80)
        self.api = TestClient(app, base_url="http://127.0.0.1")

    def stored(self, data: Any, metadata: Any, *, each: bool, success: bool) -> Job:
        """A crawl that names fields and links, with this one result."""
        payload = {"url": URL, "fields": FIELDS, "facts": ["links"], **({"each": "li"} if each else {})}
        return self.stored_text(payload, json.dumps(data), json.dumps(metadata), success=success)

    def stored_text(self, payload: dict[str, Any], data: str, metadata: str, *, success: bool = True) -> Job:
        """The same with any text instead of JSON."""
        jobs.enqueue(self.database, NewJob("site", payload))
        (job,) = jobs.claim(self.database, "w", "here", ["site"], 1)
        result = NewResult(1, URL, url_key(URL), URL, url_key(URL), data, success, metadata)
        end = Settled(1, DONE, None, None, 1, 200) if success else Settled(1, FAILED, "odd", None, 1, 404)
        found = [NewUrl(1, url_key(URL), URL, "a.test", 0)]
        urls.record(self.database, job, Checkpoint(found=found, settled=[end], results=[result]))
        return job

    def readings(self, id: str) -> Iterator[str]:
        """Every address that reads results."""
        yield from ("/", f"/jobs/{id}", f"/jobs/{id}/charts", f"/jobs/{id}/head", f"/jobs/{id}/page/1")
        tabs = ("pages", "pages?q=a", "pages?sort=-size", "fields", "fields?q=price<2", "fields?q=!day", "details")
        yield from (f"/jobs/{id}/{tab}" for tab in (*tabs, "errors", "hosts"))
        lists = ("", "?format=jsonl", "?where=price<2", "?where=tags~a", "?content=false")
        yield from (f"/v1/jobs/{id}/results{query}" for query in lists)
        yield from (f"/v1/jobs/{id}/explain?url={URL}", f"/v1/jobs/{id}/urls", f"/v1/jobs/{id}/errors")
        yield from (f"/v1/jobs/{id}/files/1/{name}" for name in ("screenshot", "pdf"))
        yield from (f"/v1/jobs/{id}/export?format={form}" for form in DOWNLOADS if form != "warc")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("any")
    with closing(open_database(f"sqlite:///{folder / 'silkline.db'}")) as database:
        yield Place(folder, database)


@settings(max_examples=examples(20, 60))
@given(any_of(READ_IN_DATA), any_of(READ_IN_METADATA), st.booleans(), st.booleans())
@example({}, {"files": 5}, False, True)
@example({}, {"files": {"screenshot": 5}}, False, True)
@example({}, {"files": {"screenshot": {"bytes": 1}}}, False, True)
@example({}, {"files": {"screenshot": {"bytes": "many", "host": {}}, "other": {"bytes": 1}}}, False, True)
@example({}, {"files": {"pdf": {"error": {}}}}, False, True)
@example({"outlinks": 5}, {"bytes": 10**30, "http_status": 10**30, "seconds": 10**400}, False, True)
@example({"fields": {"price": 10**400, "tags": [10**400, 1]}}, {}, False, True)
@example({"rows": 5, "fields": 5}, {}, True, True)
@example({"rows": {"price": 1}}, {}, True, True)
@example({"lastmod": "\ud800", "title": "\x00"}, {"seconds": float("inf"), "bytes": float("nan")}, False, True)
@example([1], None, False, True)  # not even an object
@example({"x": deep(900)}, {"y": deep(900)}, False, True)
def test_no_reader_of_results_fails(place: Place, data: Any, metadata: Any, each: bool, success: bool) -> None:
    job = place.stored(data, metadata, each=each, success=success)
    for address in place.readings(job.id):
        answer = place.api.get(address)
        assert answer.status_code in ((200, 404) if "/files/" in address else (200,)), (address, answer.text[:300])


NOT_JSON = {
    "half an object": '{"title": "x", "broken',
    "half of an escape": '{"title": "\\u00',
    "too deep": '{"title":' + "[" * 200_000 + "]" * 200_000 + "}",
    "too deep, with an escape": '{"title":' + "[" * 200_000 + '"\\u0041"' + "]" * 200_000 + "}",
    "a number that is too long": '{"title":' + "1" * 5000 + "}",
    "no number": '{"title": NaN, "text": "\\u0041", "n": 1e999}',
    "nothing": "",
}


@pytest.mark.parametrize("text", NOT_JSON.values(), ids=NOT_JSON)
def test_text_that_is_no_json_breaks_no_reader(place: Place, text: str) -> None:
    """A process that was taken over may have sent it, or a program that writes to the database."""
    payload = {"url": URL, "fields": FIELDS, "facts": ["links"]}
    for data, metadata in ((text, "{}"), ('{"title": "x"}', text)):
        job = place.stored_text(payload, data, metadata)
        for address in place.readings(job.id):
            answer = place.api.get(address)
            assert answer.status_code in ((200, 404) if "/files/" in address else (200,)), (address, answer.text[:300])
        [result] = results.page(place.database, job.id)
        assert "unreadable" in (result.metadata if data != text else result.data)
        assert results.cached(place.database, url_key(URL), datetime(2000, 1, 1, tzinfo=UTC)) is None


@settings(max_examples=examples(20, 60))
@given(any_of(READ_IN_DATA), any_of(READ_IN_METADATA), st.booleans())
@example({"kept": -(10**400), "words": []}, {"files": 5}, True)
@example({"title": {}}, {"error": [], "files": {"pdf": {"error": 5}}}, False)
def test_no_words_about_a_result_fail(data: dict[str, Any], metadata: dict[str, Any], success: bool) -> None:
    """Those of the command line, and those for language models."""
    result = Result(1, "id", 1, URL, URL, data, success, metadata, datetime.now(UTC))
    assert little_kept(data) is not None
    assert result_lines(result)
    say_files(Session(), Path("nowhere"), result)
    document = json.loads(to_json(result_view(result)))
    assert URL in page_text(document, 0)
    assert URL in result_line(document)


HIDDEN = "\x80"  # each is six characters in a page
LARGE = HIDDEN * 2_000_000


@pytest.mark.parametrize(
    ("data", "metadata"),
    [
        ({"x": LARGE}, {}),
        ({"title": LARGE}, {}),
        ({LARGE: 1}, {LARGE: 1}),
        ({"x": [HIDDEN] * 500_000, "headings": {HIDDEN * 1_000_000: LARGE}}, {"error": LARGE}),
        ({"fields": {"price": LARGE, LARGE: 1}, "field_errors": [{"field": LARGE, "error": LARGE, "raw": LARGE}]}, {}),
        ({"fields": {"price": 1}, "field_errors": [{"field": HIDDEN * 20_000}] * 100}, {}),
        ({"rows": [{"price": HIDDEN * 3_000, "tags": HIDDEN * 300}] * 1_000}, {}),
        ({"rows": [{f"{n}": HIDDEN * 300 for n in range(100)}] * 50}, {}),
        ({f"x{n}": HIDDEN * 2_000 for n in range(1_000)}, {}),
        ({}, {"files": {"screenshot": {"bytes": 1, "host": LARGE}, "pdf": {"error": LARGE}}}),
    ],
    ids=["fact", "title", "name", "list", "fields", "errors", "rows", "columns", "facts", "files"],
)
def test_a_view_of_long_values_is_short_and_takes_little_memory(place: Place, data: Any, metadata: Any) -> None:
    """The texts are cut before their control characters become visible. Afterwards each took 60 bytes or more."""
    job = place.stored(data, metadata, each="rows" in data, success=True)
    for tab in ("page/1", "fields", "pages", "details", "errors"):
        tracemalloc.start()
        answer = place.api.get(f"/jobs/{job.id}/{tab}")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert answer.status_code == 200
        assert len(answer.content) < 10_000_000
        assert peak < 100_000_000, (tab, peak)


def test_the_text_of_a_page_is_shown_up_to_its_limit(place: Place) -> None:
    job = place.stored({"markdown": "<\x80" * 500_000 + "more"}, {}, each=False, success=True)
    answer = place.api.get(f"/jobs/{job.id}/page/1").text
    assert "&lt;\\u0080" * 500_000 + "</pre>" in answer
    assert "4 more characters" in answer
