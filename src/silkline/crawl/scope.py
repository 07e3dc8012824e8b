"""Which URLs belong to a crawl. Pure: a URL and its depth in, a reason or None out.

The scope depends on the roots: the seeds, and the redirect targets of seeds. Roots are kept as 64-bit keys, because a
broad crawl has a million of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from silkline.crawl.plan import Plan
from silkline.crawl.registrable_domain import domain_of
from silkline.crawl.seen import Seen
from silkline.model.excluded_host import ExcludedHosts
from silkline.model.pattern import compile_patterns
from silkline.model.url import host_of

OUT_OF_SCOPE: Final = "out_of_scope"
EXCLUDED: Final = "excluded"
TOO_DEEP: Final = "too_deep"


class Scope:
    """The rules of one crawl."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._include = compile_patterns(plan.include)
        self._exclude = compile_patterns(plan.exclude)
        self._excluded_hosts = ExcludedHosts(plan.exclude_hosts)
        self._roots = Seen(plan.seen_seed)
        self._hosts = Seen(plan.seen_seed)
        self._verdicts: dict[str, bool] = {}
        bounds = (plan.scoped, plan.depth is not None, plan.include, plan.exclude, plan.exclude_hosts)
        self._everything = not any(bounds)

    def add_roots(self, urls: Iterable[str]) -> None:
        """Add these roots to the scope."""
        urls = list(urls)
        hosts = [host_of(url) for url in urls]
        self._hosts.add_all(map(_bare_host, hosts))
        if self._plan.scope == "domain":
            self._roots.add_all(map(domain_of, hosts))
        elif self._plan.scope == "prefix":
            self._roots.add_all(_bare_host(host) + _folder_of(url) for url, host in zip(urls, hosts, strict=True))
        self._verdicts.clear()

    def judge(self, url: str, host: str, depth: int) -> str | None:
        """Why this URL is not to be fetched. None: it is. A root (depth 0) is never out of scope."""
        if self._everything:
            return None
        plan = self._plan
        if plan.depth is not None and depth > plan.depth:
            return TOO_DEEP
        known = self._verdicts.get(host)
        if known is None:
            known = self._judge_host(host)
        if not known:
            if self.excludes(host):
                return EXCLUDED
            if depth > 0:
                return OUT_OF_SCOPE
        if depth == 0:
            return None
        if plan.scope == "prefix" and not self._below_a_root(url, host):
            return OUT_OF_SCOPE
        if self._include and not any(pattern.found_in(url) for pattern in self._include):
            return EXCLUDED
        if self._exclude and any(pattern.found_in(url) for pattern in self._exclude):
            return EXCLUDED
        return None

    def excludes(self, host: str) -> bool:
        """Whether nothing of this host may be fetched, including sitemaps."""
        return bool(self._excluded_hosts) and self._excluded_hosts.covers(host)

    def covers(self, host: str) -> bool:
        """Whether the host is part of the crawl. Other rules may still exclude single URLs of it."""
        known = self._verdicts.get(host)
        return self._judge_host(host) if known is None else known

    def _judge_host(self, host: str) -> bool:
        bare = _bare_host(host)
        verdict = not self.excludes(host) and self._covers(host, bare)
        if len(self._verdicts) > 100_000:
            self._verdicts.clear()
        self._verdicts[host] = verdict
        return verdict

    def _covers(self, host: str, bare: str) -> bool:
        if self._plan.seeded_hosts_only and bare not in self._hosts:
            return False
        if self._plan.scope == "any":
            return True
        if self._plan.scope == "domain":
            return domain_of(host) in self._roots
        return bare in self._hosts

    def _below_a_root(self, url: str, host: str) -> bool:
        path = url.split("/", 3)[3].partition("?")[0]
        folder = _bare_host(host) + "/"
        if folder in self._roots:
            return True
        for part in path.split("/")[:-1]:
            folder += part + "/"
            if folder in self._roots:
                return True
        return False


def _bare_host(host: str) -> str:
    """The host without `www.`: many sites redirect from one form to the other."""
    return host[4:] if host.startswith("www.") else host


def _folder_of(url: str) -> str:
    """`/docs/` of `https://example.com/docs/start?x`."""
    path = "/" + url.split("/", 3)[3].partition("?")[0]
    return path[: path.rfind("/") + 1]
