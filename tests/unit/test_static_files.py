"""Our own files come from memory: what a caller without a token names never becomes a path."""

import shutil
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from silkline.api.web.site import STATIC
from silkline.api.web.static_files import StaticFiles


@pytest.fixture
def files(tmp_path: Path) -> TestClient:
    """A server whose folder was removed after its start, so a request that looked into it would fail."""
    folder = tmp_path / "static"
    (folder / "vendor").mkdir(parents=True)
    (folder / "page.css").write_text("a {}")
    (folder / "vendor" / "a.js").write_text("1")
    app = Starlette()
    app.add_route("/static/{name:path}", StaticFiles(folder).serve)
    shutil.rmtree(folder)
    return TestClient(app)


def test_files_are_served_from_memory_by_their_exact_names(files: TestClient) -> None:
    style = files.get("/static/page.css")
    assert (style.status_code, style.text, style.headers["cache-control"]) == (200, "a {}", "no-cache")
    assert style.headers["content-type"] == "text/css; charset=utf-8"
    assert files.get("/static/vendor/a.js").text == "1"
    for name in ("", "vendor", "vendor/", "/page.css", "vendor//a.js", "%2e/page.css", "page.css/", "PAGE.CSS"):
        assert files.get(f"/static/{name}").status_code == 404, name
    for name in ("vendor/%2e%2e/page.css", "%2e%2e/static/page.css", "page.css%00", "a/" * 900):
        assert files.get(f"/static/{name}").status_code == 404, name
    assert files.post("/static/page.css").status_code == 405


def test_a_browser_that_has_a_file_does_not_get_it_again(files: TestClient) -> None:
    etag = files.get("/static/page.css").headers["etag"]
    for known in (etag, f'"other", {etag}', f"W/{etag}"):
        again = files.get("/static/page.css", headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
    for known in ('"other"', etag.strip('"'), '"a",' * 14_000):
        assert files.get("/static/page.css", headers={"If-None-Match": known}).status_code == 200
    head = files.head("/static/page.css")
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", "4")


def test_every_file_of_the_web_page_is_served() -> None:
    app = Starlette()
    app.add_route("/static/{name:path}", StaticFiles(STATIC).serve)
    for path in filter(Path.is_file, STATIC.rglob("*")):
        assert TestClient(app).get(f"/static/{path.relative_to(STATIC).as_posix()}").content == path.read_bytes()
