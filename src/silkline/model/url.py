"""Canonical URLs: parsed as in a browser, then written in one normal form.

Two spellings of one URL must give the same canonical URL, and so the same `url_key`: the ledger, the seen-set and the
cache depend on it. The parser follows WHATWG (ada); our own rules come after it. Nothing here opens a socket.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ada_url import join_url, normalize_url
from xxhash import xxh3_64_digest, xxh3_64_intdigest

MAX_LENGTH: Final = 8192
"""A longer URL is refused: real sites do not use one, and traps create longer and longer ones."""
MAX_HOST: Final = 253
"""The longest name in DNS. Longer ones exist in no network, but an index of a database cannot hold them."""
MAX_HREF: Final = 65_536
"""A longer link is refused before it is parsed, even if its canonical URL would be short enough."""

TRACKING_PREFIXES: Final = ("utm_", "mtm_", "pk_", "hsa_", "oly_", "vero_")
# fmt: off
TRACKING_PARAMETERS: Final = frozenset({
    "gclid", "gclsrc", "gbraid", "wbraid", "dclid", "fbclid", "msclkid", "yclid", "ysclid", "twclid", "ttclid",
    "igshid", "igsh", "li_fat_id", "mc_cid", "mc_eid", "_ga", "_gl", "_hsenc", "_hsmi", "__hssc", "__hstc", "__hsfp",
    "hsctatracking", "mkt_tok", "s_cid", "wickedid", "rb_clickid", "irclickid", "srsltid", "epik", "_openstat",
    "fb_action_ids", "fb_action_types", "fb_ref", "fb_source",
})
SESSION_PARAMETERS: Final = frozenset({
    "phpsessid", "jsessionid", "aspsessionid", "asp.net_sessionid", "sessionid", "session_id", "sessid", "zenid",
    "oscsid", "cfid", "cftoken",
})
# fmt: on


@dataclass(frozen=True, slots=True)
class UrlRules:
    """What a canonical URL drops, in addition to fragment, credentials and default port."""

    drop_tracking: bool = False
    drop_sessions: bool = False
    drop_parameters: frozenset[str] = frozenset()
    """More parameter names to drop, in lower case."""

    @property
    def trims(self) -> bool:
        return self.drop_tracking or self.drop_sessions or bool(self.drop_parameters)

    def drops(self, name: str) -> bool:
        """Whether the query parameter with this name is dropped. The comparison ignores case."""
        name = name.lower()
        if self.drop_tracking and (name in TRACKING_PARAMETERS or name.startswith(TRACKING_PREFIXES)):
            return True
        return (self.drop_sessions and name in SESSION_PARAMETERS) or name in self.drop_parameters


KEEP_ALL: Final = UrlRules()


def parse(href: str, base: str | None = None) -> str | None:
    """The WHATWG href of a link on a page, or None if it is not an http(s) URL."""
    if len(href) > MAX_HREF:
        return None
    try:
        url = normalize_url(href) if base is None else join_url(base, href)
    except ValueError:
        whole = _without_lone_surrogates(href)
        return None if whole == href else parse(whole, base)
    return url if url.startswith(("https://", "http://")) else None


def canonical(href: str, rules: UrlRules = KEEP_ALL, base: str | None = None) -> str | None:
    """The canonical form of an http(s) URL, or None if it is not a valid one."""
    url = parse(href, base)
    if url is None:
        return None
    parts = _PARTS.match(url)
    if parts is None:
        return None
    # Group 3, the dot, is dropped: `example.com.` and `example.com` are one host, with one politeness limit.
    scheme, host, _, port, path, query = parts.groups("")
    if len(host) > MAX_HOST:
        return None
    url = scheme + host + port + _escapes(path) + _escapes(query if query != "?" else "")
    if rules.trims:
        url = _trim(url, rules)
    return url if len(url) <= MAX_LENGTH else None


def canonical_links(base: str, hrefs: Iterable[str], rules: UrlRules = KEEP_ALL) -> list[str | None]:
    """The canonical URL of each link on the page at `base`, in order; None for a link that is not an http(s) URL.

    The same as `canonical(href, rules, base)` for each link, in a third of the time: a plain path needs no parser, and
    a host is parsed once for all its links. Unusual links use the full parser.
    """
    home = canonical_base(base)
    scheme, _, _ = home.partition("//")
    origin = origin_of(home) if home else ""
    page = home.partition("?")[0]
    folder = page[: page.rfind("/") + 1]
    trims, match, known = rules.trims, _PLAIN.fullmatch, _known_origin
    match_path, near, size = _PLAIN_PATH.fullmatch, origin + "/", len(origin)
    room = MAX_LENGTH - size if home and not trims else -1
    found: list[str | None] = []
    for href in hrefs:
        if len(href) <= room and "/." not in href:  # most links have a plain path on the same host
            if href[:1] == "/":
                if href[:2] != "//" and match_path(href):
                    found.append(origin + href)
                    continue
            elif href.startswith(near) and match_path(href, size):
                found.append(href)
                continue
        plain = match(href) if len(href) <= MAX_HREF else None
        if plain is None or "/." in href or not home:
            found.append(None if href.startswith(_OTHER_SCHEMES) else canonical(href, rules, base))
            continue
        start, host, path, query = plain.groups()
        if host is not None:
            prefix = known((start or scheme) + "//" + host)
            url = None if prefix is None else prefix + (path or "/")
        elif path is None:
            url = page if query is not None else home
        else:
            url = (origin if path[0] == "/" else folder) + path
        if url is not None:
            if query is not None and query != "?":
                url += query
            if trims:
                url = _trim(url, rules)
            if len(url) > MAX_LENGTH:
                url = None
        found.append(url)
    return found


def url_key(url: str) -> int:
    """The 64-bit key of a canonical URL: xxh3, signed so that both databases accept it as an integer."""
    return (xxh3_64_intdigest(url.encode()) ^ _SIGN) - _SIGN


def packed_keys(urls: Iterable[str]) -> bytes:
    """The `url_key` of each URL as eight bytes, big-endian and without duplicates."""
    return b"".join(map(xxh3_64_digest, map(str.encode, dict.fromkeys(urls))))


def host_of(url: str) -> str:
    """`host[:port]` of a canonical URL. Politeness limits count per host."""
    return url.split("/", 3)[2]


def origin_of(url: str) -> str:
    """`scheme://host[:port]` of a canonical URL. Robots rules, cookies and credentials belong to an origin."""
    return "/".join(url.split("/", 3)[:3])


def slot_of(host: str, slots: int) -> int:
    """The slot of a host, which decides the fetcher that owns it; the same in every process and every run."""
    return xxh3_64_intdigest(host.encode()) % slots


def shard_of(host: str, shards: int) -> int:
    """The shard of a host. Independent of its slot, so that the hosts of one shard have all slots."""
    return xxh3_64_intdigest(host.encode(), seed=_SHARD_SEED) % shards


_SIGN: Final = 1 << 63
_SHARD_SEED: Final = 0x5EED
_PARTS: Final = re.compile(
    r"(https?://)(?:[^/?#]*@)?([^/?#@]*?[^/?#@.])(\.?)((?::\d+)?)(/[^?#]*)(\?[^#]*)?"  # scheme host dot port path query
)
_ESCAPE: Final = re.compile(r"%(?:([0-9A-Fa-f]{2})|)")
# An escape that is not in its normal form: in lower case, incomplete, or of an unreserved character.
_UNUSUAL_ESCAPE: Final = re.compile(r"%(?:(?![0-9A-F]{2})|2[DE]|3\d|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])")
_OTHER_SCHEMES: Final = ("javascript:", "mailto:", "tel:")
_UNRESERVED: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
_SESSION_IN_PATH: Final = re.compile(r";(?:jsessionid|phpsessid|sid)=[^/?;]*", re.IGNORECASE)
# An escape in its normal form.
_PLAIN_ESCAPE: Final = "%(?:[0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[BCDF])"


def _with_parts(pattern: str, flags: int) -> re.Pattern[str]:
    """The pattern, with the characters that a path and a query keep."""
    path, query = r"[\w\-.~!$&'()*+,;=:@/]*+", r"[\w\-.~!$&()*+,;=:@/?]*+"
    for name, plain in (("PATH", path), ("QUERY", query)):
        pattern = pattern.replace(name, f"{plain}(?:{_PLAIN_ESCAPE}{plain})*")
    return re.compile(pattern, flags)


# A link that the WHATWG parser would not change: [scheme:]//host, a path and a query of plain characters. A
# relative path has no colon in its first segment (that would be a scheme); `/.` is checked separately.
_PLAIN: Final = _with_parts(
    r"""(?:(https?:)?//([^/?#\\@\x00-\x20]+))?
        ((?(2)/|(?:/(?!/)|(?!\.)[\w\-.~!$&'()*+,;=@]+(?=[/?\#]|\Z)))PATH)?
        (\?QUERY)?
        (?:\#.*)?""",
    re.VERBOSE | re.ASCII | re.DOTALL,
)

# A path and a query that are canonical as they are.
_PLAIN_PATH: Final = _with_parts(r"/PATH(?:\?(?!\Z)QUERY)?", re.ASCII)
_PLAIN_ORIGIN: Final = re.compile(r"https?://(?:[a-z0-9][a-z0-9-]*\.)+[a-z][a-z0-9-]*", re.ASCII)


def _escapes(text: str) -> str:
    """Normalize percent-encoding: upper case, nothing encoded without need, and no `%` without two hex digits.

    A lone `%` becomes `%25`, as servers interpret it; otherwise `%4%31` would become the escape `%41`.
    """
    return _ESCAPE.sub(_escape, text) if "%" in text and _UNUSUAL_ESCAPE.search(text) else text


def _escape(found: re.Match[str]) -> str:
    digits = found[1]
    if digits is None:
        return "%25"
    code = int(digits, 16)
    return chr(code) if code in _UNRESERVED else "%" + digits.upper()


def _trim(url: str, rules: UrlRules) -> str:
    """The URL without the parameters that the rules drop."""
    head, mark, query = url.partition("?")
    if rules.drop_sessions and ";" in head:
        start = head.index("/", 8)  # a host may have a `;` too
        if (bare := _SESSION_IN_PATH.sub("", head[start:])) != head[start:]:
            # The remaining text may now be a dot segment.
            head = parse(head[:start] + bare) or head
    if mark:
        kept = [pair for pair in query.split("&") if not rules.drops(pair.partition("=")[0])]
        query = "&".join(kept)
    return f"{head}?{query}" if query else head


@lru_cache(maxsize=16384)
def _known_origin(prefix: str) -> str | None:
    """The canonical origin of `https://Some.Host:443`. Hosts repeat, so each one is parsed once.

    A name of plain letters is already canonical (0.4 instead of 5 µs); IDNs and names that end in a number are not.
    """
    if len(prefix) <= MAX_HOST and _PLAIN_ORIGIN.fullmatch(prefix) and "xn--" not in prefix:
        return prefix
    url = canonical(prefix + "/")
    return None if url is None else url[:-1]


def canonical_base(base: str) -> str:
    """The canonical form of a base, or an empty string. A plain URL is canonical already (1 instead of 7 µs)."""
    plain = _PLAIN.fullmatch(base) if len(base) <= MAX_LENGTH else None
    if plain is not None and plain[1] and plain[3] and plain[4] != "?" and "#" not in base and "/." not in base:
        origin = plain[1] + "//" + plain[2]
        if _known_origin(origin) == origin:
            return base
    return canonical(base) or ""


def _without_lone_surrogates(text: str) -> str:
    """Replace each lone surrogate with U+FFFD, as browsers do."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
