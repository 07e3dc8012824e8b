"""A real Chromium in front of a real `silkline serve`, on the embedded database."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect, sync_playwright

from tests.support.served import Client, Served

SHOTS = Path(__file__).resolve().parents[2] / "build" / "screenshots"
FLAGS = [
    *("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-sandbox"),
]
PATIENCE = 120_000  # milliseconds; a loaded machine may need them
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    """No longer than a file: while it lasts, its event loop runs in the main thread, where other tests want theirs."""
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="module")
def browser(playwright: Playwright, chromium: Path) -> Iterator[Browser]:
    browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS, timeout=PATIENCE)
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("site")
    with closing(Served(f"sqlite:///{folder / 'silkline.db'}", folder, slots=4)) as server:
        yield server.ready()


Open = Callable[..., Page]


@pytest.fixture
def visit(browser: Browser, site: Client) -> Iterator[Open]:
    """Opens a page; at the end nothing may have gone wrong in the browser's console."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def open_page(path: str, *, width: int = 1280, height: int = 900, scheme: Any = "light") -> Page:
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"http://127.0.0.1:{site.port}{path}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    # A form that was refused is an error to the console, and none to us.
    assert [text for text in complaints if "status of 422" not in text] == []


@pytest.fixture
def keep() -> Callable[[Page, str], None]:
    """Keeps a screenshot under build/, and makes sure that nothing sticks out to the side."""

    def shoot(page: Page, name: str) -> None:
        SHOTS.mkdir(parents=True, exist_ok=True)
        width = page.evaluate("innerWidth")
        page.screenshot(path=SHOTS / f"{name}-{width}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} is wider than the screen"

    return shoot
