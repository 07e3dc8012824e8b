"""What the robots.txt of the first hosts of a fetcher says, in words for the log of the job."""

from __future__ import annotations

from typing import Final

from silkline.fetch.robots import DISALLOW_ALL, Robots

MOST_HOSTS: Final = 10


class RobotsNotes:
    """Keeps the words until they are sent to the leader. Knows only the first hosts, so that a large crawl pays
    nothing."""

    def __init__(self) -> None:
        self._hosts: set[str] = set()
        self._words: list[str] = []

    def add(self, host: str, rules: Robots) -> None:
        if len(self._hosts) < MOST_HOSTS and host not in self._hosts:
            self._hosts.add(host)
            self._words.append(f"{host}: {in_words(rules)}")

    def take(self) -> list[str]:
        """The words since the last call."""
        words, self._words = self._words, []
        return words


def in_words(rules: Robots) -> str:
    """For example `3 rules for us, Crawl-delay 5 s, 1 sitemap`."""
    if rules.reason is not None:
        if rules.group == DISALLOW_ALL:
            return f"could not be fetched ({rules.reason}), so nothing else may be fetched for now"
        return f"not available ({rules.reason}), so everything may be fetched"
    if rules.group == DISALLOW_ALL:
        return "everything is forbidden"
    lines, sitemaps = len(rules.group.splitlines()), len(rules.sitemaps)
    parts = [
        f"{lines:,} {'rule' if lines == 1 else 'rules'} for us",
        f"Crawl-delay {rules.crawl_delay:g} s" if rules.crawl_delay else "",
        f"{sitemaps:,} {'sitemap' if sitemaps == 1 else 'sitemaps'}" if sitemaps else "",
    ]
    return ", ".join(filter(None, parts))
