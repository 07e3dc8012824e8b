"""PDF and plain text: what can be read is read, what cannot is said."""

import zlib
from itertools import count

import pytest

from silkline.parse.pdf import parse_pdf
from silkline.parse.plain import decode_text


def make_pdf(*pages, title="A report"):
    """A small PDF, each page a list of lines."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    objects.append(f"<< /Title ({title}) >>".encode())
    kids = []
    for lines in pages:
        shown = " T* ".join(f"({line}) Tj" for line in lines)
        stream = f"BT /F1 12 Tf 14 TL 72 720 Td {shown} ET".encode()
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        kids.append(len(objects) + 1)
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            b"/Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>" % len(objects)
        )
    references = " ".join(f"{kid} 0 R" for kid in kids)
    objects[1] = f"<< /Type /Pages /Kids [{references}] /Count {len(kids)} >>".encode()
    out, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return out + b"trailer << /Size %d /Root 1 0 R /Info 4 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start)


LINES = [
    "The first paragraph of this report is so long that it takes",
    "more than one line to be told, but then it ends.",
    "The second one",
]


def test_text_title_and_pages():
    found = parse_pdf(make_pdf(LINES, ["Another page"]))
    assert found.title == "A report"
    assert found.pages == 2
    assert "takes more than one line" in found.markdown
    assert found.markdown.endswith("Another page")
    assert (found.truncated, found.problem) == (False, "")


def test_words_cut_by_a_hyphen_are_whole_again():
    assert "harbour master" in parse_pdf(make_pdf(["The har-", "bour master"])).markdown


def test_pages_size_and_time_are_bounded():
    body = make_pdf(*[[f"Page number {number}"] for number in range(5)])
    few = parse_pdf(body, max_pages=2)
    assert (few.markdown, few.truncated, few.pages) == ("Page number 0\n\nPage number 1", True, 5)
    short = parse_pdf(body, max_content=10)
    assert (short.markdown, short.truncated) == ("Page numbe", True)
    ticks = count()
    parse_pdf(make_pdf(["Page number 0"]), clock=lambda: float(next(ticks)))
    for_one_page = next(ticks)
    ticks = count()
    slow = parse_pdf(body, max_seconds=for_one_page + 0.5, clock=lambda: float(next(ticks)))
    assert (slow.markdown, slow.truncated) == ("Page number 0", True)


def test_the_time_is_looked_at_inside_of_a_page():
    ticks = count()
    body = make_pdf(["First"], [f"Line {number}" for number in range(40)])
    found = parse_pdf(body, max_seconds=30.0, clock=lambda: float(next(ticks)))
    assert (found.markdown, found.truncated) == ("First", True)
    assert next(ticks) < 40


def with_many_objects(number):
    """A small file whose table names this many objects. Opening it takes 15 µs for each."""
    start = b"%PDF-1.5\n1 0 obj<</Pages 2 0 R>>endobj\n"
    table = zlib.compress(b"\1\1\1" * number, 9)
    head = b"<</Type/XRef/Size 2000000000/W[1 1 1]/Index[0 2000000000]/Root 1 0 R/Filter/FlateDecode/Length %d>>"
    stream = head % len(table) + b"stream\n" + table + b"\nendstream"
    return start + b"3 0 obj\n%b\nendobj\nstartxref\n%d\n%%%%EOF" % (stream, len(start))


def test_the_time_limit_holds_while_the_file_is_opened():
    body = with_many_objects(1_000_000)
    assert len(body) < 4_000
    assert parse_pdf(body, max_seconds=0.2).problem == "it could not be opened within 0.2 s"


def test_the_time_limit_holds_inside_of_an_operation():
    """The clock that is looked at between operations stands still here. What was read before is kept."""
    body = make_pdf(["First"], ["\\1" * 1_000_000])
    found = parse_pdf(body, max_seconds=0.3, clock=lambda: 0.0)
    assert (found.markdown, found.pages, found.truncated) == ("First", 2, True)


@pytest.mark.parametrize(
    "body", [b"", b"%PDF-1.7 and then nothing", b"<html>not a pdf</html>", b"%PDF-1.4\n" + b"\x00\xff" * 1000]
)
def test_what_is_broken_is_said(body):
    found = parse_pdf(body)
    assert found.problem
    assert found.markdown == ""


def test_half_a_file_never_raises():
    body = make_pdf(LINES, LINES, LINES)
    for cut in range(0, len(body), 97):
        parse_pdf(body[:cut])


@pytest.mark.parametrize(
    ("body", "charset", "expected"),
    [
        ("Grüße\r\nzwei".encode(), None, "Grüße\nzwei"),
        ("Grüße".encode("latin-1"), "iso-8859-1", "Grüße"),
        ("Grüße".encode("utf-16"), "utf-8", "Grüße"),
        ("\ufeffGrüße".encode(), "latin1", "Grüße"),
        ("Grüße".encode(), "no-such-charset", "Grüße"),
        ("Herzliche Grüße aus München".encode("latin-1"), None, "Herzliche Grüße aus München"),
        (b"a\x00b", None, "ab"),
        (b"", None, ""),
    ],
)  # fmt: skip
def test_plain_text(body, charset, expected):
    assert decode_text(body, charset) == expected


def test_plain_text_is_bounded():
    assert decode_text(b"x" * 1000, longest=10) == "x" * 10
