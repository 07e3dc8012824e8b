"""What a body is, whatever it is called; and the two fingerprints."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.parse.fingerprint import content_hash, distance, simhash
from silkline.parse.sniff import charset_of, media_type, sniff, utf16_without_mark

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"


@pytest.mark.parametrize(
    ("body", "declared", "kind"),
    [
        (b"<!DOCTYPE html><p>x", "text/html; charset=utf-8", "html"),
        (b"just words", "text/html", "html"),
        (b"", "text/html", "html"),
        (PNG, "text/html", "image"),
        (b"%PDF-1.7\n", "text/html", "pdf"),
        (b"%PDF-1.7\n", "", "pdf"),
        (b"PK\x03\x04abc", "text/html", "other"),
        (b"\x1f\x8b\x08\x00", "text/html", "other"),
        (bytes(range(200)), "text/html", "other"),
        (b"BMW is a maker of cars", "text/plain", "text"),
        (b"BM\x00\x01\x02\x03", "", "image"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "text/html", "image"),
        (b"\x00\x00\x00\x20ftypavif", "", "image"),
        (b"\x00\x00\x00\x20ftypisom", "video/mp4", "other"),
        (b"<?xml version='1.0'?><rss version='2.0'>", "text/html; x", "html"),
        (b"<?xml version='1.0'?><rss version='2.0'>", "text/xml", "feed"),
        (b"<feed xmlns='http://www.w3.org/2005/Atom'>", "application/atom+xml", "feed"),
        (b"<?xml version='1.0'?><urlset>", "application/xml", "xml"),
        (b"<?xml version='1.0'?><!DOCTYPE html><html>", "application/xml", "html"),
        (b"<urlset xmlns='x'>", "", "xml"),
        (b"\xef\xbb\xbf \n<!-- hello --><html>", "", "html"),
        ("<html><p>x".encode("utf-16"), "", "html"),
        ("<html><p>x".encode("utf-16le"), "text/html", "html"),
        (b"<p>words", "application/octet-stream", "html"),
        (b"words", "application/octet-stream", "other"),
        (b"words", "", "text"),
        (b"<html>shown as source", "text/plain", "text"),
        (b'{"a": 1}', "application/json", "text"),
        (b"data", "image/jpeg", "image"),
        (b"<svg xmlns='x'>", "image/svg+xml", "xml"),
        (b"data", "audio/mpeg", "other"),
        (b"data", "application/zip", "other"),
    ],
)
def test_kind_of_a_body(body, declared, kind):
    assert sniff(body, declared) == kind


JAPANESE = "<title>\u65e5\u672c\u8a9e\u306e\u30da\u30fc\u30b8</title><p>" + "\u672c\u6587\u3067\u3059\u3002" * 50


@pytest.mark.parametrize(
    ("body", "charset", "kind"),
    [
        (b"<!doctype html><title>t</title><p>a stray \0 byte", "utf-8", "html"),
        (b"<!doctype html><title>t</title><p>a stray \x02 byte", "", "html"),
        (b"\0 <center>a stray \x02 byte", "", "html"),
        (b"\xef\xbb\xbf<!-- \x01 --><p>x", "", "html"),
        (JAPANESE.encode("utf-16-le"), "utf-16le", "html"),
        (JAPANESE.encode("utf-16-le"), "UTF-16", "html"),
        (JAPANESE.encode("utf-16-be"), "utf-16be", "html"),
        (JAPANESE.encode("utf-16-be"), "utf-8", "other"),
        (b"\0\x01\x02 no tag at all", "utf-8", "other"),
        (b"<\x01\x02\x03", "", "other"),
        (b"<!doctype html>"[:4] + bytes(100), "", "other"),
    ],
)
def test_html_is_believed_if_it_starts_like_html(body: bytes, charset: str, kind: str) -> None:
    assert sniff(body, "text/html", charset) == kind
    if charset:
        assert sniff(body, f"text/html; charset={charset}") == kind
    assert sniff(body) != "html" or utf16_without_mark(body), "without text/html, control bytes count"


@given(st.binary(max_size=100), st.text(max_size=20))
def test_sniffing_never_fails(body, declared):
    assert sniff(body, declared) in ("html", "xml", "feed", "text", "pdf", "image", "other")


@pytest.mark.parametrize(
    ("header", "kind", "charset"),
    [
        ("text/html", "text/html", None),
        ("Text/HTML;Charset=UTF-8", "text/html", "UTF-8"),
        ('text/html; foo=bar; charset="iso-8859-1"', "text/html", "iso-8859-1"),
        ("text/html; charset=", "text/html", None),
        ("", "", None),
    ],
)
def test_content_type(header, kind, charset):
    assert media_type(header) == kind
    assert charset_of(header) == charset


def sentences(numbers):
    return ". ".join(f"Sentence number {number} tells a story about item {number * number}" for number in numbers)


def test_near_duplicates_are_near_and_others_far():
    original = sentences(range(100))
    touched = sentences([*range(40), 1000, *range(41, 100)])
    other = sentences(range(500, 600))
    assert distance(simhash(original), simhash(original)) == 0
    assert distance(simhash(original), simhash(touched)) <= 6
    assert distance(simhash(original), simhash(other)) > 15
    assert content_hash(original) != content_hash(touched)


def test_a_short_text_is_taken_by_its_words():
    assert distance(simhash("one two three four five six"), simhash("one two three four five seven")) < 20
    assert simhash("one two three") != simhash("four five six")


def test_the_order_of_sentences_does_not_matter():
    assert simhash(sentences(range(50))) == simhash(sentences(reversed(range(50))) + ". ")


@given(st.text())
def test_fingerprints_are_signed_64_bit(text):
    assert -(2**63) <= simhash(text) < 2**63
    assert -(2**63) <= content_hash(text) < 2**63


def test_fingerprints_are_the_same_in_every_process():
    """Fixed values: they are stored, and compared with those of later runs."""
    assert (content_hash("ledger"), simhash(sentences(range(20)))) == (2570306808292018270, 3652783118531167234)
