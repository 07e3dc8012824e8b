"""Reading what a form of the page sends."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

from fastapi import Request

from silkline.api.problems import Problem

WHOLE = ("limit", "depth")
FIELDS = ("worker", "url", "limit", "depth", "scope", "speed", "render")


async def fields(request: Request) -> dict[str, str]:
    """The fields of a form, the last of each name."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Problem("unsupported-media-type", "this is a form")
    try:
        pairs = parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=100)
    except ValueError as error:
        raise Problem("bad-request", "the form cannot be read") from error
    return dict(pairs)


def posted_job(form: dict[str, str]) -> dict[str, Any]:
    """The form for a new crawl as the JSON that the API takes; what was left empty is left out."""
    body: dict[str, Any] = {}
    for name in FIELDS:
        value = form.get(name, "").strip()
        if not value:
            continue
        body[name] = int(value) if name in WHOLE and value.isdecimal() and len(value) < 10 else value
    url = body.get("url", "")
    if url and "://" not in url:
        body["url"] = f"https://{url}"
    if body.get("worker") != "site":
        for name in ("depth", "scope", "speed"):
            body.pop(name, None)
    if body.get("worker") == "page":
        body.pop("limit", None)
    return body
