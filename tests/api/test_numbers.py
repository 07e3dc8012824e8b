"""No number in an address, a query, a cursor or a body makes the server fail: negative, huge, or none at all."""

import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from silkline.api.event_sources import read_cursor
from tests.support.served import Client

NUMBERS = (
    *("-1", "0", "1", "1.5", str(2**31), str(2**62 - 1), str(2**62), str(2**63 - 1), str(2**63), str(2**64)),
    *(str(-(2**31) - 1), str(-(2**63) - 1), str(10**26), str(-(10**26)), "9" * 5000, "-0", "+1", " 1", "1_0", "\u0661"),
    *("nan", "inf", "-inf", "1e400", "1e-400", "true", "", "\x00"),
)
IN_JSON = (-1, 0, 2**31, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), 1e300, -1e300, 1e-300, True)


@pytest.fixture
def job(client: Client) -> str:
    """A job with one stored page."""
    asked = f"https://a.test/{uuid.uuid4()}"
    posted = client.post("/v1/jobs", {"kind": "extension", "url": asked, "priority": 2**31 - 1})
    claimed = client.post("/v1/claims", {"kinds": ["extension"], "name": "numbers"}).json["items"][0]
    assert claimed["job"]["id"] == posted.json["id"]
    body = {"pages": [{"url": asked, "http_status": 200, "data": {"title": "T"}, "metadata": {"bytes": 5}}]}
    lease = claimed["lease"]
    assert client.post(f"/v1/jobs/{posted.json['id']}/results", body, Silkline_Lease=lease).status == 200
    assert client.post(f"/v1/jobs/{posted.json['id']}/finish", {"end": "completed"}, Silkline_Lease=lease).status == 200
    id: str = posted.json["id"]
    return id


def numbers_of_the_api(client: Client, id: str) -> Iterator[tuple[str, str]]:
    """Every number that the description of the API names, as the address before and behind it."""
    for path, methods in client.get("/openapi.json").json["paths"].items():
        for parameter in methods.get("get", {}).get("parameters", ()):
            kinds = [parameter["schema"], *parameter["schema"].get("anyOf", ())]
            if any(kind.get("type") in ("integer", "number") for kind in kinds):
                filled = path.replace("{id}", id).replace("{name}", "screenshot")
                if parameter["in"] == "query":
                    yield f"{filled}?{parameter['name']}=", ""
                else:
                    before, _, behind = filled.partition("{" + parameter["name"] + "}")
                    yield before, behind


def numbers_of_the_page(id: str) -> Iterator[tuple[str, str]]:
    tabs = ("errors", "skipped", "logs", "fields", "overview")
    yield f"/jobs/{id}/page/", ""
    yield from ((f"/jobs/{id}/{tab}?cursor=", "") for tab in tabs)
    yield f"/jobs/{id}/pages?looked_at=", ""


def test_no_number_in_an_address_fails(client: Client, job: str) -> None:
    places = [*numbers_of_the_api(client, job), *numbers_of_the_page(job)]
    assert len(places) > 12
    for before, behind in places:
        for number in NUMBERS:
            if (before.endswith("wait=") or "timeout=" in before) and number in ("1", "1.5", "+1", " 1"):
                continue  # it would wait
            answer = client.get(f"{before}{quote(number)}{behind}")
            assert answer.status < 500, (before, number, answer)


@pytest.mark.parametrize("sort", ["found", "-found", "title", "-title", "size", "-size", "time", "-time"])
def test_no_cursor_of_the_list_of_pages_fails(client: Client, job: str, sort: str) -> None:
    """The cursor is JSON that a browser sends back: a place and an id."""
    places = (
        "null",
        "-1",
        "10",
        "0.5",
        '"a"',
        '"\\u0000"',
        '"\\ud800"',
        "NaN",
        "Infinity",
        "-Infinity",
        "1e400",
        "[]",
        "9" * 400,
    )
    for place in (*places, *(number for number in NUMBERS if number.lstrip("-").isdecimal() and len(number) < 900)):
        for cursor in (f"[{place}, 1]", f"[1, {place}]", f"[{place}]", place, '["", 1]', "[" * 900):
            answer = client.get(f"/jobs/{job}/pages?{urlencode({'sort': sort, 'at': cursor})}")
            assert answer.status < 500, (cursor, answer)


@pytest.mark.parametrize("event_id", [f"{10**40}.1.1", "1.1", "-1.-1.-1", f"1.{2**63}.1", "9" * 90, "nan.1.1", "².1.1"])
def test_an_id_of_an_event_that_is_no_cursor_is_ignored(event_id: str) -> None:
    assert read_cursor(event_id) is None
    assert read_cursor("1.2.3") is not None


def numbers_of_jobs(client: Client) -> Iterator[tuple[str, str]]:
    """Every number in the specs of the kinds, as (kind, field)."""
    schema = client.get("/openapi.json").json["components"]["schemas"]["JobRequest"]
    for spec in schema["oneOf"]:
        for name, field in spec["properties"].items():
            if any(each.get("type") in ("integer", "number") for each in (field, *field.get("anyOf", ()))):
                yield spec["properties"]["kind"]["const"], name


def test_no_number_in_a_job_fails(client: Client) -> None:
    subjects: dict[str, dict[str, Any]] = {"bluesky": {"actor": "a.test"}, "extract": {"job": str(uuid.uuid4())}}
    tried = list(numbers_of_jobs(client))
    assert len(tried) > 20
    for kind, name in tried:
        for number in IN_JSON:
            body = {"kind": kind, "paused": True, **subjects.get(kind, {"url": "https://a.test/"}), name: number}
            answer = client.post("/v1/jobs", body)
            assert answer.status < 500, (body, answer)
            if answer.status == 201:
                for path in (f"/v1/jobs/{answer.json['id']}", f"/jobs/{answer.json['id']}", "/"):
                    assert client.get(path).status == 200, (body, path)
                assert client.post(f"/v1/jobs/{answer.json['id']}/cancel").status == 200


@pytest.mark.parametrize("field", ["limit", "depth", "delay"])
def test_no_number_in_a_form_fails(client: Client, field: str) -> None:
    accepted = []
    for number in NUMBERS:
        form = urlencode({"kind": "site", "url": "https://a.test/", field: number}).encode()
        answer = client.post(
            "/jobs", form, Content_Type="application/x-www-form-urlencoded", Sec_Fetch_Site="same-origin"
        )
        assert answer.status in (303, 422), (number, answer)
        if answer.status == 303:
            accepted.append(number)
            assert client.post(f"/v1{answer.headers['location']}/cancel").status == 200
    assert "1" in accepted
    assert str(10**26) not in accepted, "the counters of a crawl have 64 bits"
