"""robots.txt by RFC 9309: the rules of the file for us, and the decision when there is no valid file.

Only our own group is kept, as text within limits (robots_matching.py). Hosts share equal groups, since a crawl
may hold a million. `read` and `decide` are pure; `load` makes the requests.
"""

import re
import sys
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from silkline.fetch.redirects_outside_ledger import OneHop, allow_all, follow
from silkline.fetch.robots_matching import Rule, comparable_path, group_text, rules_of
from silkline.model import fetched as reasons
from silkline.model.fetched import Fetched, Request, retry_after
from silkline.model.url import MAX_LENGTH as MAX_URL

MAX_BYTES: Final = 500 * 1024
MAX_REDIRECTS: Final = 5
MAX_CRAWL_DELAY: Final = 30.0
MAX_SITEMAPS: Final = 1000
FRESH_FOR: Final = 86_400.0
# If the robots.txt of a host cannot be fetched, the host is not crawled for this long, then asked again.
RETRY_AFTER: Final = 600.0
PRODUCT: Final = "silkline"
ALLOW_ALL: Final = ""
DISALLOW_ALL: Final = "-/"

_NAME: Final = re.compile(r"[A-Za-z_-]+")


class Robots(msgspec.Struct, frozen=True):
    """The rules for one origin until `expires_at`. `reason` is the failure if there was no valid file.

    `group` is our group as lines of `+` or `-` and a pattern: 0.1-0.5 KB for a host. It is compiled when it is needed.
    """

    group: str
    expires_at: float
    crawl_delay: float | None = None
    sitemaps: tuple[str, ...] = ()
    reason: str | None = None
    retry_after: float = 0.0
    """The seconds of the Retry-After header, if there is no file."""

    def allows(self, url: str) -> bool:
        """Whether the URL may be fetched."""
        rule = self.rule_for(url)
        return rule is None or rule.allow

    def refusal(self, url: str) -> str | None:
        """Why the URL must not be fetched, as in `explain`; None if it may be."""
        rule = self.rule_for(url)
        return None if rule is None or rule.allow else self._why(rule)

    def rule_for(self, url: str) -> Rule | None:
        """The rule that decides; None if no rule matches this URL."""
        if not self.group:
            return None
        path = comparable_path(url)
        if path == "/robots.txt":
            return None
        return rules_of(self.group).rule_for(path)

    def explain(self, url: str) -> str:
        """The line that decides, or why no line decides."""
        return self._why(self.rule_for(url))

    def _why(self, rule: Rule | None) -> str:
        if self.reason is not None:
            return f"robots.txt could not be read: {self.reason}"
        return rule.text if rule is not None else "no rule of robots.txt speaks of it"


def decide(answer: Fetched, now: float, product: str = PRODUCT) -> Robots:
    """The rules that follow from a response for robots.txt (RFC 9309, section 2.3.1)."""
    if answer.ok:
        return read(answer.body, now, product)
    reason = answer.reason or reasons.BAD_RESPONSE
    if 400 <= answer.status < 500 and answer.status != 429 and reason == reasons.http_reason(answer.status):
        return Robots(ALLOW_ALL, now + FRESH_FOR, reason=reason)
    if reason in (reasons.TOO_MANY_REDIRECTS, reasons.REDIRECT_LOOP, reasons.BAD_REDIRECT):
        # The RFC allows a crawler to treat such a file as unavailable, like a missing file.
        return Robots(ALLOW_ALL, now + FRESH_FOR, reason=reason)
    asked = retry_after(answer, now) or 0.0
    return Robots(DISALLOW_ALL, now + max(asked, RETRY_AFTER), reason=reason, retry_after=asked)


async def load(
    client: OneHop,
    origin: str,
    now: Callable[[], float],
    *,
    product: str = PRODUCT,
    allow: Callable[[str], str | None] = allow_all,
) -> Robots:
    """Fetch and parse the robots.txt of an origin such as `https://example.com`."""
    return decide(await ask(client, origin, allow), now(), product)


async def ask(client: OneHop, origin: str, allow: Callable[[str], str | None] = allow_all) -> Fetched:
    """The response for the robots.txt of an origin, not yet parsed."""
    request = Request(f"{origin}/robots.txt", max_body=MAX_BYTES, cut=True, purpose="robots")
    return await follow(client, request, allow, max_hops=MAX_REDIRECTS)


def read(body: bytes, now: float, product: str = PRODUCT) -> Robots:
    """Parse a file. Invalid lines are skipped; bytes that are not UTF-8 become U+FFFD.

    A file in UTF-16 is not allowed, but is understood: without its first two bytes and the NULs it is plain text.
    """
    text = body[:MAX_BYTES].removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").replace("\0", "").lstrip("\ufffd")
    lines, sitemaps = _our_group(text.splitlines(), product.lower())
    delays = (_delay(value) for key, value in lines if key == "crawl-delay")
    delay = next((delay for delay in delays if delay is not None), None)
    rules = ((key == "allow", value) for key, value in lines if value and key != "crawl-delay")
    return Robots(sys.intern(group_text(rules)), now + FRESH_FOR, delay, sitemaps)


def _our_group(lines: Iterable[str], product: str) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
    """The lines of all groups for a product, else of the groups for all crawlers (`*`), and the sitemaps."""
    groups: dict[str, list[tuple[str, str]]] = {}
    sitemaps: dict[str, None] = {}
    current: set[str] = set()
    naming = False
    for line in lines:
        key, colon, value = line.partition("#")[0].partition(":")
        if not colon:
            continue
        key, value = key.strip().lower(), value.strip()
        if key in ("user-agent", "useragent", "user agent"):
            if not naming:
                current = set()
            naming = True
            named = _product(value)
            if named in (product, "*"):
                current.add(named)
                groups.setdefault(named, [])
        elif key in ("allow", "disallow", "crawl-delay"):
            naming = False
            for name in current:
                groups[name].append((key, value))
        elif key in ("sitemap", "site-map") and value and len(value) <= MAX_URL and len(sitemaps) < MAX_SITEMAPS:
            sitemaps[value] = None
    return groups.get(product, groups.get("*", [])), tuple(sitemaps)


def _product(value: str) -> str:
    """`Silkline/1.0 (x)` names the product `silkline`. A value without a name matches no product."""
    if value.startswith("*"):
        return "*"
    name = _NAME.match(value)
    return name[0].lower() if name else ""


def _delay(value: str) -> float | None:
    try:
        seconds = float(value)
    except ValueError:
        return None
    return min(seconds, MAX_CRAWL_DELAY) if seconds >= 0 else None
