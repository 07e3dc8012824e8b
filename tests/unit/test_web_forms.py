"""The form for a new crawl: what was typed becomes a spec, and what is wrong is said beside its field."""

import asyncio
import dataclasses
from datetime import UTC, datetime
from typing import Any

import pytest
from fastapi import Request
from starlette.types import Message

from silkline.api import submission
from silkline.api.private_addresses import private_url
from silkline.api.web import forms
from silkline.api.web.again import completed_by, filled_in, repeated, way_of
from silkline.config import Settings
from silkline.errors import SpecError
from silkline.model.job import Job, Status

START = {"kind": "site", "url": "https://example.com"}


def problems(**form: str) -> dict[str, str]:
    """What the page would say about this form."""
    try:
        submission.read(forms.posted_job({**START, **form}), Settings())
    except (SpecError, forms.FormProblem) as error:
        return forms.problems_of(error)
    return {}


def test_a_form_is_not_decoded_on_the_event_loop() -> None:
    body = b"url=" + "\u00e9%41".encode() * 100_000 + b"&urls=a%0D%0Ab"

    async def receive() -> Message:
        return {"type": "http.request", "body": body}

    async def main() -> None:
        headers = [(b"content-type", b"application/x-www-form-urlencoded")]
        other = asyncio.create_task(asyncio.sleep(0))
        read = await forms.fields(Request({"type": "http", "headers": headers}, receive))
        assert other.done(), "other requests go on while a form is decoded"
        assert read == {"url": "\u00e9A" * 100_000, "urls": "a\nb"}

    asyncio.run(main())


def test_every_field_reaches_the_spec() -> None:
    form = {
        **START,
        **{"limit": "20", "depth": "3", "scope": "domain", "speed": "polite", "render": "auto", "delay": "1,5"},
        "urls": " example.org \r\n\r\nhttp://example.net/a\n",
        "include": "/docs/\n/blog/",
        "exclude": r"\.pdf$",
        "headers": "Accept-Language: de\nX-Time: 10:30",
    }
    assert submission.read(forms.posted_job(form), Settings()).payload == {
        **{"url": "https://example.com", "urls": ["https://example.org", "http://example.net/a"]},
        **{"limit": 20, "depth": 3, "scope": "domain", "speed": "polite", "render": "auto", "delay": 1.5},
        **{"include": ["/docs/", "/blog/"], "exclude": [r"\.pdf$"]},
        "headers": {"Accept-Language": "de", "X-Time": "10:30"},
    }


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("limit", "many", "whole number, 1 or more"),
        ("limit", "0", "whole number, 1 or more"),
        ("depth", "-1", "whole number, 0 or more"),
        ("delay", "soon", "seconds, from 0 to 3600"),
        ("delay", "nan", "seconds, from 0 to 3600"),
        ("delay", "4000", "seconds, from 0 to 3600"),
        ("urls", "https://example.org\njavascript:alert(1)", "Line 2 must start with http"),
        ("url", "notaurl", "must start with http"),
        ("url", "javascript:alert(1)", "must start with http"),
        ("url", "", "Type a URL"),
        ("include", "/docs/\n(", "Line 2 is not a regular expression"),
        ("exclude", "[", "Line 1 is not a regular expression"),
        ("headers", "Accept: a\nsecret-without-colon", "Line 2: write it as Name: value"),
        ("headers", "Bad Name: x", "is not a header name"),
        ("url", "http://10.1.2.3/", ""),
    ],
)
def test_what_is_wrong_is_said_beside_its_field(field: str, value: str, says: str) -> None:
    found = problems(**{field: value})
    assert list(found) == [field if says else ""]
    assert says in next(iter(found.values()))
    assert "secret" not in str(found), "what stands in a header is not said again"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("example.com", "https://example.com"),
        ("example.com:8443/a?b", "https://example.com:8443/a?b"),
        ("localhost:8000", "http://localhost:8000"),
        ("127.0.0.1:8000/x", "http://127.0.0.1:8000/x"),
        ("[::1]:8000", "http://[::1]:8000"),
        ("intranet:8080", "https://intranet:8080"),
        ("ftp://example.com", "ftp://example.com"),
        ("mailto:me@example.com", "mailto:me@example.com"),
    ],
)
def test_a_scheme_is_added_where_a_host_was_typed(typed: str, meant: str) -> None:
    assert forms.with_scheme(typed) == meant


def job(**fields: Any) -> Job:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    values: dict[str, Any] = {field.name: None for field in dataclasses.fields(Job)}
    values |= {
        "id": "019a8f6e-5dc2-7340-86fe-b900fe2551e3",
        "kind": "site",
        "status": Status.COMPLETED,
        "priority": 5,
    }
    values |= {"payload": {"url": "https://example.com/"}, "metadata": {}, "tenant": "t", "max_retries": 1}
    return Job(**{**values, "created_at": now, "run_at": now, **fields})


SPEC = {
    **{"url": "https://example.com/", "urls": ["https://example.com/b"], "limit": 7, "delay": 0.5, "scope": "domain"},
    **{"include": ["/a"], "exclude": ["/b", "/c"], "speed": "fast", "render": "always"},
    **{"warc": True, "user_agent": "Tester/1", "headers": {"Authorization": "Bearer abc"}, "cookies": {"id": "s3cret"}},
}


def test_the_form_for_crawling_again_gives_the_same_spec() -> None:
    before = job(payload=SPEC)
    form = filled_in(before)
    assert "abc" not in str(form)
    assert "s3cret" not in str(form)
    new = submission.read(completed_by(before, forms.posted_job(form)), Settings())
    assert new.payload == submission.read({"kind": "site", **SPEC}, Settings()).payload
    assert (new.priority, new.tenant, new.max_retries) == (5, "t", 1)


@pytest.mark.parametrize("changed", [{"url": "https://evil.test/"}, {"urls": "https://evil.test/"}, {"scope": "any"}])
def test_secrets_do_not_come_along_to_other_addresses(changed: dict[str, str]) -> None:
    before = job(payload=SPEC)
    body = completed_by(before, forms.posted_job({**filled_in(before), **changed}))
    assert "headers" not in body
    assert "cookies" not in body
    assert body["user_agent"] == "Tester/1"


def test_how_a_job_is_crawled_again() -> None:
    assert way_of(job(), with_sample=True) == "form"
    assert way_of(job(status=Status.RUNNING), with_sample=True) == ""
    assert way_of(job(payload={"seeded": True}), with_sample=True) == ""
    assert way_of(job(metadata={"sample_site": True}), with_sample=True) == "sample"
    many = {"urls": [f"https://example.com/{number}" for number in range(2_000)]}
    assert way_of(job(kind="page", payload=many), with_sample=True) == "repeat"
    video = job(kind="youtube", payload={"url": "https://www.youtube.com/watch?v=1", "languages": ["de"]})
    assert way_of(video, with_sample=True) == "repeat"
    assert repeated(video, Settings()).payload == video.payload


@pytest.mark.parametrize(
    ("url", "private"),
    [
        ("http://127.0.0.1:8000/", True),
        ("http://localhost/", True),
        ("http://LOCALHOST:1/", True),
        ("http://[::1]/", True),
        ("http://[::ffff:10.0.0.1]/", True),
        ("http://0x7f.1/", True),
        ("http://2130706433/", True),
        ("http://169.254.169.254/", True),
        ("http://%31%32%37.0.0.1/", True),
        ("http:///127.0.0.1/", True),
        ("http:127.0.0.1/", True),
        ("http://\\127.0.0.1/", True),
        ("http:\\\\127.0.0.1\\", True),
        ("\thttp://1\n27.0.0.1/", True),
        ("http://\uff11\uff12\uff17.\uff10.\uff10.\uff11/", True),
        ("http://①②⑦.⓪.⓪.①/", True),
        ("http://127。0。0。1/", True),
        ("http://127.0.0.1./", True),
        ("http://user@127.0.0.1/", True),
        ("http://loc%61lhost./", True),
        ("http://ⓛocalhost/", True),
        ("http://app.localhost:3000/", True),
        ("http://127.0.0.1:0/", True),
        ("http://[::1]:0/x:0/", True),
        ("http://metadata.google.internal/", True),
        ("http://METADATA.goog.:8080/", True),
        ("http://metadata.example.com/", False),
        ("http://8.8.8.8:0/", False),
        ("http://8.8.8.8/", False),
        ("http://mylocalhost/", False),
        ("http://localhost.example.com/", False),
        ("http://10.example.com/", False),
        ("https://example.com/10.0.0.1", False),
    ],
)
def test_an_address_that_a_url_names_is_known_to_be_private(url: str, private: bool) -> None:
    assert (private_url(["https://example.com", url]) == url) is private
    assert private_url([url], ["127.0.0.0/8", "10.0.0.0/8", "::1/128", "169.254.0.0/16"]) is None


FIELDS = 'name = h1\nprice:price = .price\nsku = json_ld:Product.sku\ntags = {"css": ".tag", "many": true}'


def test_fields_are_lines_of_the_form_and_come_back() -> None:
    body = forms.posted_job({**START, "fields": f"{FIELDS}\r\n\r\n", "each": ".product"})
    spec = submission.read(body, Settings()).payload
    assert spec["fields"] == {
        "name": {"css": "h1"},
        "price": {"css": ".price", "type": "price"},
        "sku": {"json_ld": "Product.sku"},
        "tags": {"css": ".tag", "many": True},
    }
    shown = forms.from_spec("site", spec)
    assert (shown["fields"], shown["each"]) == (FIELDS, ".product")


@pytest.mark.parametrize(
    ("form", "field", "says"),
    [
        ({"fields": "name = h1\nprice"}, "fields", "Line 2: 'price' is not a field"),
        ({"fields": "name = ["}, "fields", "Line 1: is not a CSS selector"),
        ({"fields": "a = h1\n\na = h2"}, "fields", "Line 3: there is a field 'a' already"),
        ({"fields": "a:money = h1"}, "fields", "Line 1: unknown type 'money'"),
        ({"fields": 'a = {"css": '}, "fields", "Line 1: what follows the = is not JSON"),
        ({"each": ".product"}, "each", "Name at least one field"),
        ({"fields": "a = h1", "each": "["}, "each", "is not a CSS selector"),
        ({"screenshot": "full"}, "screenshot", "Only a browser makes pictures"),
    ],
)
def test_what_is_wrong_with_fields_and_pictures_is_said_in_place(form: dict[str, str], field: str, says: str) -> None:
    found = problems(**form)
    assert set(found) == {field}
    assert says in found[field]
