"""Sites that asked to be left alone are left alone, however the file names them."""

import pytest

from silkline.model.excluded_host import ExcludedHosts, excluded_hosts_of


@pytest.mark.parametrize(
    ("line", "covered", "not_covered"),
    [
        ("example.com", ["example.com", "www.example.com", "a.b.example.com", "example.com:8080"], ["anexample.com"]),
        ("Example.COM.", ["example.com", "a.example.com"], ["example.org"]),
        ("www.example.com", ["www.example.com", "example.com"], ["blog.example.com"]),
        ("blog.example.com", ["blog.example.com", "a.blog.example.com"], ["example.com", "www.example.com"]),
        ("example.com:8080", ["example.com:8080", "a.example.com:8080"], ["example.com", "example.com:81"]),
        ("*.example.com", ["a.example.com", "www.example.com", "a.b.example.com:81"], ["example.com"]),
        (".example.com", ["example.com", "a.example.com"], ["example.org"]),
        ("https://example.com/private?x=http://y", ["example.com", "a.example.com"], ["example.org"]),
        ("http://example.com:8080/", ["example.com:8080"], ["example.com"]),
        ("https://*.example.com/", ["a.example.com"], ["example.com"]),
        ("127.0.0.2", ["127.0.0.2", "127.0.0.2:8080"], ["127.0.0.1", "1.127.0.0.2.example"]),
        ("127.0.0.2:8080", ["127.0.0.2:8080"], ["127.0.0.2:81", "127.0.0.2"]),
        ("[::1]:8080", ["[::1]:8080"], ["[::1]"]),
        ("localhost", ["localhost", "localhost:3000"], ["local"]),
        ("bücher.example", ["xn--bcher-kva.example", "a.xn--bcher-kva.example"], ["bucher.example"]),
    ],
)
def test_a_line_covers_its_hosts(line: str, covered: list[str], not_covered: list[str]) -> None:
    hosts = ExcludedHosts([line])
    assert {host: hosts.covers(host) for host in covered} == dict.fromkeys(covered, True)
    assert {host: hosts.covers(host) for host in not_covered} == dict.fromkeys(not_covered, False)


def test_comments_and_empty_lines_are_fine() -> None:
    lines = ["# asked in May", "", "  example.com  # by mail", "\t", "https://b.example/#top", "example.com"]
    assert excluded_hosts_of(lines) == ["example.com", "b.example"]


@pytest.mark.parametrize(
    "line",
    [
        *("two words", "http://", "-", "*", "*.", "a*b.example", "user:pw@example.com", "ftp://example.com/"),
        *("example.com:port", "..", "a..b", "/path", "exa mple.com", "*.127.0.0.1", "[::1", "javascript:alert(1)"),
    ],
)
def test_a_line_that_is_no_host_is_an_error_with_its_number(line: str) -> None:
    with pytest.raises(ValueError, match=r"^line 3: .*is not a host, a domain, "):
        excluded_hosts_of(["example.com", "# comment", line])
