"""Crawls in a database of their own, and a web to crawl."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.crawl.harness import Crawl, SyntheticWeb, closing


@pytest.fixture
def make_crawl(tmp_path: Path) -> Iterator[Callable[..., Crawl]]:
    with ExitStack() as stack:

        def make(name: str = "one", **tuning: Any) -> Crawl:
            directory = tmp_path / name
            directory.mkdir()
            crawl: Crawl = stack.enter_context(closing(Crawl(directory, tuning)))
            return crawl

        yield make


@pytest.fixture(scope="module")
def web() -> Iterator[SyntheticWeb]:
    with closing(SyntheticWeb(hosts=20, pages=30)) as server:
        yield server
