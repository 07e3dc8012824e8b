"""Which pages are only there for their scripts to fill."""

import pytest
from turbohtml import parse

from silkline.model.page import Wanted
from silkline.parse.html import parse_page
from silkline.parse.scripted import ENOUGH_WORDS, needs_scripts

SCRIPT = "<script src=/app.js></script>"
FEW = "<p>" + "word " * 40 + "</p>"
SOME = "<p>" + "word " * 150 + "</p>"
MANY = "<p>" + "word " * ENOUGH_WORDS + "</p>"


@pytest.mark.parametrize(
    ("source", "needs"),
    [
        (f"<title>App</title><div id=root></div>{SCRIPT}", True),
        (f'<body><div id="app" class="x">\n  <!-- here --></div>{SCRIPT}', True),
        (f"<noscript>You need to enable JavaScript to run this app.</noscript><div id=root></div>{SCRIPT}", True),
        ("<body><script>document.write('all of it')</script>", True),
        (f"<app-root></app-root>{FEW}{SCRIPT}", True),
        (f"<app-root>Loading...</app-root>{SOME}{SCRIPT}", True),
        (f"{SOME}<div id=results></div>{SCRIPT}", True),
        (f"{SOME}<noscript><p>Please turn on JavaScript.</p></noscript>{SCRIPT}", True),
        (f"<div id=__next><p>{'word ' * 40}</p></div>{SCRIPT}", True),
        (f"<div id=__next><p>{'word ' * 150}</p></div>{SCRIPT}", False),
        (f"{FEW}{SCRIPT}", False),
        (f"{SOME}<noscript><img src=/pixel></noscript>{SCRIPT}", False),
        (f"{MANY}<div id=root></div><noscript>Enable JavaScript.</noscript>{SCRIPT}", False),
        ("<div id=root></div>", False),
        ("<p>A short page.</p>", False),
        ('<p>Hi.</p><script type="application/ld+json">{"@type": "Thing"}</script>', False),
        ("", False),
    ],
)
def test_which_pages_need_their_scripts(source: str, needs: bool) -> None:
    page = parse_page(source.encode(), "http://example.com/", Wanted(scripts=True))
    assert page.needs_scripts is needs
    assert parse_page(source.encode(), "http://example.com/").needs_scripts is False, "nobody asked"


@pytest.mark.parametrize(
    "piece",
    [
        *(
            b"<div id=",
            b"<div id ",
            b"<div id=x>",
            b"<div id=x> ",
            b"<div id=x>loading",
            b"loading ",
            b"<div id=x><!--",
        ),
        *(b"<noscript>", b"<noscript>java", b"<script", b"<script type ", b"<a-", b"<a-a>", b"a-", b" ", b"id = "),
    ],
)
def test_a_hostile_source_takes_no_longer_than_its_length(piece: bytes) -> None:
    """Each would take minutes if any of the patterns looked back."""
    for start in (
        b"<script></script>",
        b"<script></script><div id=x>loading",
        b"<script></script><noscript>",
        b"<script ",
    ):
        needs_scripts("word " * 50, start + piece * (200_000 // len(piece)))


def test_the_text_is_not_read_to_its_end() -> None:
    document = parse(b"<p>" + b"word " * 1_000_000)
    assert needs_scripts(document.text, b"") is False
