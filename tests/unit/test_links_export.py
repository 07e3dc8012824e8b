"""The links of a job are looked up for some pages at a time: fewer, if pages have very many links."""

from datetime import UTC, datetime

import pytest

from silkline.export import links
from silkline.store.results import Result


def page(number, many):
    url = f"https://a.example/{number}"
    found = [{"url": f"https://b.example/{number}/{each}", "text": "x", "rel": None} for each in range(many)]
    return Result(number, "job", number, url, url, {"outlinks": found}, True, {}, datetime.now(UTC))


@pytest.fixture
def looked_up(monkeypatch):
    """How many addresses were looked up at once."""
    numbers = []
    monkeypatch.setattr(links.urls, "by_keys", lambda _database, _job, keys: numbers.append(len(keys)) or {})
    monkeypatch.setattr(links.urls, "by_ids", lambda _database, _job, _ids: {})
    return numbers


def test_pages_with_very_many_links_are_looked_up_a_few_at_a_time(monkeypatch, looked_up):
    monkeypatch.setattr(links, "announced_results", lambda _database, _job: (page(n, 5_000) for n in range(30)))
    assert sum(1 for _ in links._with_texts(None, "job")) == 150_000
    monkeypatch.setattr(links.links, "every", lambda _database, _job: ((n, [n] * 5_000) for n in range(30)))
    monkeypatch.setattr(links.urls, "by_keys", lambda _database, _job, keys: looked_up.append(5_000 * len(keys)) or {})
    assert not any(links._by_key(None, "job"))
    assert max(looked_up) <= links.LINKS + 5_000


def test_pages_with_few_links_are_looked_up_together(monkeypatch, looked_up):
    monkeypatch.setattr(
        links, "announced_results", lambda _database, _job: (page(n, 3) for n in range(links.PAGES + 1))
    )
    assert sum(1 for _ in links._with_texts(None, "job")) == 3 * (links.PAGES + 1)
    assert looked_up == [3 * links.PAGES, 3]


def test_the_links_of_one_page_are_looked_up_some_at_a_time(monkeypatch, looked_up):
    monkeypatch.setattr(links, "announced_results", lambda _database, _job: [page(1, 3 * links.LINKS)])
    assert sum(1 for _ in links._with_texts(None, "job")) == 3 * links.LINKS
    assert looked_up == [links.LINKS] * 3
