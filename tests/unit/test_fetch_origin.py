"""URLs taken apart: the quick way must agree with ada-url, for the guard and the headers rely on it."""

import ada_url
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silkline.fetch.origin import Target, join, locate, origin_of

HOSTS = [
    *("example.com", "127.1", "0x7f.1", "1.2.3.4", "256.1.1.1", "[::1]", "[::ffff:1.2.3.4]"),
    *("a-b.c", "xn--bcher-kva.de", "a..b", "01.2"),
]
HOST = st.sampled_from(HOSTS) | st.text("abc019.-x", min_size=1, max_size=8)
PORT = st.sampled_from(["", ":80", ":443", ":8080", ":0", ":00080", ":65535", ":65536"])
REST = st.text("/abc.?#&=%2e@:\\ \t\n'\"<>ü*$", max_size=12)


@settings(max_examples=500)
@given(st.sampled_from(["http", "https", "HTTP"]), HOST, PORT, REST)
def test_every_url_is_taken_apart_as_ada_does(scheme: str, host: str, port: str, rest: str) -> None:
    url = f"{scheme}://{host}{port}/{rest}"
    target = locate(url)
    if isinstance(target, str):
        assert not ada_url.check_url(url) or ":0/" in url
        return
    parsed = ada_url.URL(url)
    assert target.origin.text == parsed.origin
    assert target.origin.host == parsed.hostname
    assert target.origin.port == int(parsed.port or {"http:": 80, "https:": 443}[str(parsed.protocol)])
    assert bool(target.origin.literal) == (parsed.host_type != ada_url.HostType.DEFAULT)
    assert ada_url.normalize_url(target.url) == ada_url.normalize_url(url).partition("#")[0]
    assert target.url.isascii()
    assert not set(target.url) & set(" \t\r\n")


@pytest.mark.parametrize("host", ["127.1", "0x7f000001", "2130706433", "017700000001", "0177.1", "127.0.0.1"])
def test_numeric_hosts_are_addresses(host: str) -> None:
    target = locate(f"http://{host}/")
    assert isinstance(target, Target)
    assert target.origin.literal == "127.0.0.1"


@pytest.mark.parametrize("host", ["a" * 6_000 + ".test", "a." * 130 + "test", "b." * 3_000 + "test"])
def test_a_host_that_no_network_can_have_is_no_target(host: str) -> None:
    assert locate(f"http://{host}/x") == "bad_url"
    assert locate(f"http://{host}:8080/\u00fc") == "bad_url"


def test_credentials_and_fragments_leave_the_url() -> None:
    target = locate("http://user:pa%3Ass@example.com/a?b#c")
    assert isinstance(target, Target)
    assert (target.url, target.authorization) == ("http://example.com/a?b", "Basic dXNlcjpwYTpzcw==")


@pytest.mark.parametrize(
    "url", ["http://example.com@evil.test/", "http://example.com\\@evil.test/", "http://example.com#@evil.test/"]
)
def test_the_host_is_the_one_that_a_browser_would_ask(url: str) -> None:
    assert origin_of(url) == str(ada_url.URL(url).origin)


@pytest.mark.parametrize(
    ("base", "reference", "joined"),
    [
        ("http://a.test/b/c", "../d", "http://a.test/d"),
        ("http://a.test/", "//b.test/#x", "http://b.test/"),
        ("http://a.test/", "https://u:p@b.test/x", "https://b.test/x"),
        ("http://a.test/", "http://[", ""),
        ("http://a.test/", "mailto:x@y", "mailto:x@y"),
    ],
)
def test_references_are_joined(base: str, reference: str, joined: str) -> None:
    assert join(base, reference) == joined
