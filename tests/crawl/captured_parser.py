"""A real parser or fetcher process in which an attacker runs code: `captured_parser.py ROLE WIRE DOOR MARKS PARENT`.

Everything runs as it does in `silkline.crawl.child_process`, except that the reader of pages runs the body of a page as
Python code and gives back what it printed. A fetcher runs the pieces of code in CAPTURED_CODE when it opens its client.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys

from silkline.crawl import child_process, parser
from silkline.crawl.reading import Body, PageReader, Reading


def run(code: str) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        try:
            exec(compile(code, "attack", "exec"), {"__name__": "attack"})
        except BaseException as error:
            print(f"{type(error).__name__}: {error}")
    return said.getvalue().strip()


class CapturedReader(PageReader):
    """Runs what it should read, if it is marked as code."""

    def reading_of(self, body: Body) -> Reading:
        if body.content_type == "text/x-attack":
            return Reading(body.id, "attack", run(body.body.decode()))
        return super().reading_of(body)


def open_captured_client(plan: object) -> None:
    print(json.dumps([run(code) for code in json.loads(os.environ["CAPTURED_CODE"])]), flush=True)
    os._exit(0)


if __name__ == "__main__":
    parser.PageReader = CapturedReader  # type: ignore[misc]
    if "CAPTURED_CODE" in os.environ:
        child_process.open_client = open_captured_client  # type: ignore[assignment]
    child_process.main(*sys.argv[1:])
