"""What a typed address allows, what it never allows, and passwords in URLs."""

import base64
from pathlib import Path

import pytest

from silkline.model.spec import MAX_URLS
from silkline.sample.server import SampleServer
from silkline.sample.site import SampleAnswer
from tests.acceptance.conftest import Silkline

HTML = "text/html"
SECRET = "hunter2secret"


@pytest.mark.parametrize("command", ["fetch", "map", "crawl"])
def test_a_typed_metadata_address_is_refused(silkline: Silkline, command: str) -> None:
    done = silkline(command, "http://169.254.169.254/latest/", "--ignore-robots")
    assert "--allow-private" in done.err, done
    assert "1 done" not in done.err
    said = silkline("jobs", "show", "last", "--json").json
    assert "allow_private" not in said["spec"]


def test_a_typed_private_address_is_allowed(silkline: Silkline) -> None:
    with SampleServer() as site:
        assert silkline(site.url).code == 0


@pytest.mark.parametrize("command", [("fetch",), ("map",), ("crawl",), ("jobs", "add", "--kind", "page"), ()])
def test_a_password_in_a_url_is_refused_and_stored_nowhere(silkline: Silkline, command: tuple[str, ...]) -> None:
    with SampleServer() as site:
        url = site.url.replace("://", f"://me:{SECRET}@")
        silkline(*command, url).refused(2, "user name or password", "header")
        assert site.requests == []
    assert_nowhere(silkline.folder)


def test_a_password_in_a_seeds_file_is_refused(silkline: Silkline) -> None:
    (silkline.folder / "seeds.txt").write_text(f"https://example.com/\nhttps://me:{SECRET}@example.com/\n")
    silkline("crawl", "--seeds", "seeds.txt").refused(2, "a line of the seeds file contains a user name or password")
    (silkline.folder / "seeds.txt").unlink()
    assert_nowhere(silkline.folder)


def test_passwords_in_links_and_redirects_are_neither_sent_nor_stored(silkline: Silkline) -> None:
    def respond(target: str, origin: str) -> SampleAnswer:
        inside = origin.replace("://", f"://me:{SECRET}@")
        if target == "/":
            return SampleAnswer(200, HTML, f"<h1>Start</h1><a href='{inside}/a'>a</a> <a href='/moved'>b</a>".encode())
        if target == "/moved":
            return SampleAnswer(302, HTML, b"", f"{inside}/b")
        return SampleAnswer(404 if "robots" in target else 200, HTML, b"<h1>Page</h1><p>Words</p>")

    with SampleServer(respond=respond) as site:
        assert silkline("crawl", site.url, "--speed", "max", "--fetchers", "1").code == 0
        assert {"/", "/a", "/b"} <= set(site.requests)
        assert not any("Authorization" in headers for headers in site.headers)
    exported = silkline("results", "last").out
    assert exported.count("\n") == 3
    assert SECRET not in exported
    assert_nowhere(silkline.folder)


def test_a_header_for_one_origin_does_not_follow_a_redirect_to_another(silkline: Silkline) -> None:
    basic = "Basic " + base64.b64encode(b"me:pw").decode()
    with SampleServer() as other:
        elsewhere = other.url
        with SampleServer(respond=lambda target, origin: SampleAnswer(302, HTML, b"", f"{elsewhere}about/")) as site:
            done = silkline(
                *(site.url, "--ignore-robots", "--speed", "max", "--header", f"Authorization: {basic}"),
                *("--allow-private", elsewhere.removeprefix("http://").rstrip("/")),
            )
            assert done.code == 0, done
            assert site.headers[0]["Authorization"] == basic
        assert other.headers
        assert not any("Authorization" in headers for headers in other.headers)


@pytest.mark.parametrize(("named", "told"), [("", "both"), ("typed", "typed")])
def test_headers_are_for_the_origins_of_a_seeds_file_too(silkline: Silkline, named: str, told: str) -> None:
    """They are URLs that the user gave. A host that they only link to gets nothing."""
    with SampleServer() as linked, SampleServer() as listed:
        page = f'<a href="{linked.url}about/">there</a>'.encode()
        with SampleServer(respond=lambda target, origin: SampleAnswer(200, HTML, page)) as typed:
            (silkline.folder / "seeds.txt").write_text(f"{listed.url}about/\n")
            only = ("--headers-for", typed.url.rstrip("/")) if named else ()
            done = silkline(
                *("crawl", typed.url, "--seeds", "seeds.txt", "--scope", "any", "--depth", "1", "--ignore-robots"),
                *("--speed", "max", "--header", "X-Mine: 1", "--cookie", "a=b", "--allow-private", "127.0.0.1", *only),
            )
            assert done.code == 0, done
            assert {headers.get("X-Mine") for headers in typed.headers} == {"1"}
            assert {headers.get("Cookie") for headers in typed.headers} == {"a=b"}
        assert {headers.get("X-Mine") for headers in listed.headers} == ({"1"} if told == "both" else {None})
        assert {headers.get("X-Mine") for headers in linked.headers} == {None}


def test_too_many_origins_for_headers_are_refused(silkline: Silkline) -> None:
    (silkline.folder / "seeds.txt").write_text("".join(f"h{number}.test\n" for number in range(MAX_URLS + 1)))
    done = silkline("crawl", "--seeds", "seeds.txt", "--header", "X-Mine: 1", "--detach")
    done.refused(2, "more than 100,000 origins", "--headers-for")
    assert silkline("jobs", "ls", "--json").out.strip() in ("", "[]")


@pytest.mark.parametrize(
    ("line", "left_alone"),
    [("127.0.0.1", True), ("http://127.0.0.1/", True), ("example.com", False)],
)
def test_excluded_hosts_are_left_alone(silkline: Silkline, line: str, left_alone: bool) -> None:
    (silkline.folder / "hosts.txt").write_text(f"# they asked\n\n{line}  # by mail\n")
    with SampleServer() as site:
        silkline("crawl", site.url, "--speed", "max", "--limit", "3", "--exclude-hosts", "hosts.txt")
        assert (site.requests == []) is left_alone


def test_a_wrong_line_of_excluded_hosts_is_named_by_its_number(silkline: Silkline) -> None:
    (silkline.folder / "hosts.txt").write_text("example.com\n# comment\nnot a host\n")
    done = silkline("crawl", "https://example.com/", "--exclude-hosts", "hosts.txt")
    done.refused(2, "--exclude-hosts hosts.txt, line 3: 'not a host' is not a host, a domain")
    assert not (silkline.folder / "data").exists()


def assert_nowhere(folder: Path) -> None:
    for file in folder.rglob("*"):
        if file.is_file():
            assert SECRET.encode() not in file.read_bytes(), file
