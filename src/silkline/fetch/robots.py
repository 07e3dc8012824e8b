"""robots.txt by RFC 9309: what the file says to us, and what it means when there is no proper file.

Only our own group is kept, as text, and equal groups are shared between hosts, for a crawl may hold a
million. `read` and `decide` are pure; `load` makes the requests.
"""

import re
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec

from silkline.fetch.redirects import Fetcher, allow_all, follow
from silkline.model import fetched as reasons
from silkline.model.fetched import Fetched, Request, retry_after

MAX_BYTES: Final = 500 * 1024
MAX_REDIRECTS: Final = 5
MAX_CRAWL_DELAY: Final = 30.0
MAX_SITEMAPS: Final = 1000
FRESH_FOR: Final = 86_400.0
# A host whose robots.txt cannot be had is left alone for this long, then asked again.
RETRY_AFTER: Final = 600.0
PRODUCT: Final = "silkline"
ALLOW_ALL: Final = ""
DISALLOW_ALL: Final = "-/"

_NAME: Final = re.compile(r"[A-Za-z_-]+")
_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
# What `quote` must leave alone because it is written out already or means something.
_SAFE: Final = "%/?:@!&'()*+,;=[]#$~|^{}\"<>\\`"


class Rule(NamedTuple):
    """One line of our group. `pieces` are what stands between the `*` of the pattern."""

    allow: bool
    text: str
    pieces: tuple[str, ...]
    anchored: bool

    def matches(self, path: str) -> bool:
        """In one pass over the path, whatever the pattern: taking each piece at its first place is enough."""
        pieces = self.pieces
        if not path.startswith(pieces[0]):
            return False
        if len(pieces) == 1:
            return not self.anchored or path == pieces[0]
        at = len(pieces[0])
        for piece in pieces[1:-1]:
            found = path.find(piece, at)
            if found < 0:
                return False
            at = found + len(piece)
        last = pieces[-1]
        if self.anchored:
            return len(path) - at >= len(last) and path.endswith(last)
        return path.find(last, at) >= 0


class Rules(NamedTuple):
    """A group made ready for matching, strongest rule first."""

    rules: tuple[Rule, ...]
    literal_starts: tuple[str, ...]
    wild: tuple[Rule, ...]


class Robots(msgspec.Struct, frozen=True):
    """What holds for one origin until `expires_at`. `reason` tells why, where it is not the file itself that says so.

    `group` is our group as lines of `+` or `-` and a pattern: 0.1-0.5 KB for a host, made ready when it is asked for.
    """

    group: str
    expires_at: float
    crawl_delay: float | None = None
    sitemaps: tuple[str, ...] = ()
    reason: str | None = None

    def allows(self, url: str) -> bool:
        """Whether the URL may be fetched."""
        rule = self.rule_for(url)
        return rule is None or rule.allow

    def rule_for(self, url: str) -> Rule | None:
        """The rule that decides; None where no rule speaks of this URL."""
        if not self.group:
            return None
        path = comparable_path(url)
        if path == "/robots.txt":
            return None
        rules = _compile(self.group)
        # One call in C settles most URLs of most hosts.
        for rule in rules.rules if path.startswith(rules.literal_starts) else rules.wild:
            if rule.matches(path):
                return rule
        return None

    def explain(self, url: str) -> str:
        """The line that decides, or why none does."""
        if self.reason is not None:
            return f"robots.txt could not be read: {self.reason}"
        rule = self.rule_for(url)
        return rule.text if rule is not None else "no rule of robots.txt speaks of it"


def decide(answer: Fetched, now: float, product: str = PRODUCT) -> Robots:
    """What an answer for robots.txt means (RFC 9309, section 2.3.1)."""
    if answer.ok:
        return read(answer.body, now, product)
    reason = answer.reason or reasons.BAD_RESPONSE
    if 400 <= answer.status < 500 and answer.status != 429 and reason == reasons.http_reason(answer.status):
        return Robots(ALLOW_ALL, now + FRESH_FOR, reason=reason)
    if reason in (reasons.TOO_MANY_REDIRECTS, reasons.REDIRECT_LOOP, reasons.BAD_REDIRECT):
        # The RFC lets a crawler take such a file as unavailable, which is to say absent.
        return Robots(ALLOW_ALL, now + FRESH_FOR, reason=reason)
    wait = max(retry_after(answer, now) or 0.0, RETRY_AFTER)
    return Robots(DISALLOW_ALL, now + wait, reason=reason)


async def load(
    client: Fetcher,
    origin: str,
    now: Callable[[], float],
    *,
    product: str = PRODUCT,
    allow: Callable[[str], str | None] = allow_all,
) -> Robots:
    """Fetch and understand the robots.txt of an origin such as `https://example.com`."""
    return decide(await ask(client, origin, allow), now(), product)


async def ask(client: Fetcher, origin: str, allow: Callable[[str], str | None] = allow_all) -> Fetched:
    """The answer for the robots.txt of an origin; nothing is read yet."""
    request = Request(f"{origin}/robots.txt", max_body=MAX_BYTES, cut=True)
    return await follow(client, request, allow, max_hops=MAX_REDIRECTS)


def read(body: bytes, now: float, product: str = PRODUCT) -> Robots:
    """Parse a file. Junk is skipped line by line; bytes that are no UTF-8 are kept as they would stand in a URL."""
    text = body[:MAX_BYTES].removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").replace("\0", "")
    groups, sitemaps = _groups(text.splitlines())
    lines = groups.get(product.lower(), groups.get("*", []))
    delays = (_delay(value) for key, value in lines if key == "crawl-delay")
    delay = next((delay for delay in delays if delay is not None), None)
    marked = ("+" + value if key == "allow" else "-" + value for key, value in lines if value and key != "crawl-delay")
    return Robots(sys.intern("\n".join(dict.fromkeys(marked))), now + FRESH_FOR, delay, sitemaps)


def _groups(lines: Iterable[str]) -> tuple[dict[str, list[tuple[str, str]]], tuple[str, ...]]:
    """Each product token's lines, those of several groups for one token together, and the sitemaps."""
    groups: dict[str, list[tuple[str, str]]] = {}
    sitemaps: dict[str, None] = {}
    current: list[list[tuple[str, str]]] = []
    naming = False
    for line in lines:
        key, colon, value = line.partition("#")[0].partition(":")
        if not colon:
            continue
        key, value = key.strip().lower(), value.strip()
        if key in ("user-agent", "useragent", "user agent"):
            if not naming:
                current = []
            naming = True
            current.append(groups.setdefault(_product(value), []))
        elif key in ("allow", "disallow", "crawl-delay"):
            naming = False
            for group in current:
                group.append((key, value))
        elif key in ("sitemap", "site-map") and value and len(sitemaps) < MAX_SITEMAPS:
            sitemaps[value] = None
    return groups, tuple(sitemaps)


def _product(value: str) -> str:
    """`Silkline/1.0 (x)` names the product `silkline`; what names none matches nobody."""
    if value.startswith("*"):
        return "*"
    name = _NAME.match(value)
    return name[0].lower() if name else ""


@lru_cache(maxsize=8192)
def _compile(group: str) -> Rules:
    ordered: list[tuple[int, bool, Rule]] = []
    for line in group.split("\n"):
        allow, value = line[0] == "+", line[1:]
        pattern = _comparable(value if value[0] in "/*" else "/" + value)
        # The longest pattern decides, and of two equally long ones the one that allows.
        ordered.append((-len(pattern), not allow, _rule(allow, value, pattern)))
    rules = tuple(rule for *_, rule in sorted(ordered))
    wild = tuple(rule for rule in rules if len(rule.pieces) > 1)
    return Rules(rules, _shortest_starts({rule.pieces[0] for rule in rules if len(rule.pieces) == 1}), wild)


def _shortest_starts(starts: set[str]) -> tuple[str, ...]:
    """Without those that another one covers."""
    kept: list[str] = []
    for start in sorted(starts):
        if not (kept and start.startswith(kept[-1])):
            kept.append(start)
    return tuple(kept)


def _rule(allow: bool, value: str, pattern: str) -> Rule:
    anchored = pattern.endswith("$")
    if anchored:
        pattern = pattern[:-1]
    # In the middle `$` is a character like any other, and comparable paths hold it escaped.
    pieces = pattern.replace("$", "%24").split("*")
    inner = [piece for piece in pieces[1:-1] if piece]
    text = f"{'Allow' if allow else 'Disallow'}: {value}"
    return Rule(allow, text, (pieces[0], *inner, pieces[-1]) if len(pieces) > 1 else (pieces[0],), anchored)


def _delay(value: str) -> float | None:
    try:
        seconds = float(value)
    except ValueError:
        return None
    return min(seconds, MAX_CRAWL_DELAY) if seconds >= 0 else None


def comparable_path(url: str) -> str:
    """Path and query of a canonical URL in the one form that patterns are compared in."""
    start = url.find("/", url.find("://") + 3)
    path = url[start:].partition("#")[0] if start >= 0 else "/"
    if "*" in path or "$" in path:
        path = path.replace("*", "%2A").replace("$", "%24")
    return _comparable(path)


def _comparable(text: str) -> str:
    """Escapes in upper case, needless ones undone, what is not ASCII escaped."""
    if not text.isascii() or " " in text:
        text = quote(text, safe=_SAFE)
    return _ESCAPE.sub(_settle, text) if "%" in text else text


def _settle(escape: re.Match[str]) -> str:
    character = chr(int(escape[1], 16))
    return character if character in _UNRESERVED else escape[0].upper()
