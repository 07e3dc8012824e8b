"""Reads the forms of the page, and fills them in again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from silkline.api.problems import Problem
from silkline.api.web.field_lines import BadLine, as_lines, read_lines
from silkline.errors import SpecError
from silkline.model.bare_host import is_host
from silkline.model.spec import MAX_URLS

TEXTS = ("kind", "url", "scope", "speed", "render", "screenshot", "each")
WHOLE = ("limit", "depth")
LINES = ("urls", "include", "exclude", "allow_private")
# The fields of the form, each with what a wrong number is told.
NUMBERS = {
    "limit": "a whole number, 1 or more",
    "depth": "a whole number, 0 or more",
    "delay": "a number of seconds, from 0 to 3600",
}
SHOWN_AGAIN = 100_000  # characters of all fields of a form that was refused
FIELDS = (*TEXTS, *NUMBERS, *LINES, "headers", "fields")
# Fields that a kind does not have are dropped, so that a change of the kind is not an error.
_OF_CRAWLS = ("depth", "scope", "include", "exclude")
NOT_TAKEN = {"page": ("limit", *_OF_CRAWLS), "map": (*_OF_CRAWLS, "screenshot", "fields", "each")}


class FormProblem(Exception):
    """What is wrong with a form: a message for each field, and one for the whole under the empty name."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__("; ".join(problems.values()))
        self.problems = dict(problems)


async def fields(request: Request) -> dict[str, str]:
    """The fields of a form, the last of each name."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Problem("unsupported-media-type", "send the body as application/x-www-form-urlencoded")
    try:
        # In a thread: a megabyte of escapes takes 0.1 s, and all other requests would wait for it.
        return await run_in_threadpool(_fields_of, await request.body())
    except ValueError as error:
        raise Problem("bad-request", "the server cannot read this form") from error


def _fields_of(body: bytes) -> dict[str, str]:
    pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=100)
    return {name: value.replace("\r\n", "\n") for name, value in pairs}


def posted_job(form: Mapping[str, str]) -> dict[str, Any]:
    """The form for a new crawl as JSON for the API, without the empty fields."""
    body: dict[str, Any] = {}
    for name in (*TEXTS, *NUMBERS):
        value = form.get(name, "").strip()
        if value:
            body[name] = _number(name, value) if name in NUMBERS else value
    for name in LINES:
        if lines := [line.strip() for line in form.get(name, "").splitlines() if line.strip()]:
            body[name] = lines
            if len(lines) > MAX_URLS:
                raise FormProblem({name: f"These are {len(lines):,} lines, {MAX_URLS:,} are allowed"})
    if headers := _headers(form.get("headers", "")):
        body["headers"] = headers
    try:
        if table := read_lines(form.get("fields", "")):
            body["fields"] = table
    except BadLine as error:
        raise FormProblem({"fields": str(error)}) from None
    if "url" in body:
        body["url"] = with_scheme(body["url"])
    if "urls" in body:
        body["urls"] = [with_scheme(url) for url in body["urls"]]
    for name in NOT_TAKEN.get(body.get("kind", ""), ()):
        body.pop(name, None)
    if "url" not in body and "urls" not in body:
        raise FormProblem({"url": "Type a URL, such as https://example.com"})
    if "screenshot" in body and "render" not in body:
        raise FormProblem({"screenshot": "Only a browser makes pictures: run scripts always, or where needed"})
    if "each" in body and "fields" not in body:
        raise FormProblem({"each": "Name at least one field of these elements"})
    return body


def with_scheme(url: str) -> str:
    """Add a scheme to `example.com` or `localhost:8000`. Other texts do not change; the validation checks them."""
    if not is_host(url):
        return url
    return f"http://{url}" if re.match(r"localhost\b|\[|[\d.]+(:|/|$)", url, re.IGNORECASE) else f"https://{url}"


def _number(name: str, value: str) -> float:
    try:
        return int(value) if name in WHOLE else float(value.replace(",", "."))
    except ValueError:
        raise FormProblem({name: f"This must be {NUMBERS[name]}"}) from None


def _headers(text: str) -> dict[str, str]:
    """`Name: value` lines. An error never repeats a line, because it may contain a secret."""
    headers = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, colon, value = line.partition(":")
        if not line.strip():
            continue
        if not colon or not name.strip():
            raise FormProblem({"headers": f"Line {number}: write it as Name: value"})
        headers[name.strip()] = value.strip()
    return headers


def shown_again(form: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """What a form that was refused shows again, and what it says about texts that are too long for that."""
    shown: dict[str, str] = {}
    left = SHOWN_AGAIN
    for name in sorted(form, key=lambda name: len(form[name])):
        left -= len(form[name])
        if left >= 0:
            shown[name] = form[name]
    words = f"Texts with more than {SHOWN_AGAIN:,} characters are not shown again: go back to change this one"
    return shown, {name: words for name in form if name in FIELDS and name not in shown}


def problems_of(error: Exception) -> dict[str, str]:
    """A message for each invalid field. The empty name has the message that belongs to no field."""
    if isinstance(error, FormProblem):
        return error.problems
    if not isinstance(error, SpecError) or not error.problems:
        return {"": str(error)}
    found: dict[str, str] = {}
    for problem in error.problems:
        field, _, rest = problem.field.partition(".")
        field = field or "url"
        message = _message(field, rest, problem.message)
        found.setdefault(field if field in FIELDS else "", message if field in FIELDS else f"{field}: {message}")
    return found


def _message(field: str, rest: str, text: str) -> str:
    """What is said beside a field. `rest`: the place in it, such as the number of a line."""
    if field in NUMBERS:
        return f"This must be {NUMBERS[field]}"
    if rest.isdecimal():
        return f"Line {int(rest) + 1} {text}"
    if field == "headers" and rest:
        return f"The header {rest.removesuffix('.[key]')[:80]!r} {text}"
    return f"The URL {text}" if field == "url" and text[:1].islower() else f"This {text}" if field != "url" else text


def from_spec(kind: str, spec: Mapping[str, Any]) -> dict[str, str]:
    """The form that gives this spec, without its secrets."""
    form = {"kind": kind}
    for name in (*TEXTS, *NUMBERS):
        if spec.get(name) is not None:
            form[name] = _plain_number(spec[name])
    for name in LINES:
        value = spec.get(name) or ()
        form[name] = "\n".join([value] if isinstance(value, str) else value)
    form["fields"] = as_lines(spec.get("fields") or {})
    return form


def _plain_number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
