"""The rules of one robots.txt group: how they are kept as text, and which rule decides about a URL.

Memory and the work for each URL are bounded for every file. A group has at most `MAX_RULES` exact rules with
`MAX_WILDCARDS` wildcards (`*`) between them, in `MAX_LETTERS` letters. Rules beyond that are handled the safe way: an
`Allow` is ignored, and a `Disallow` is widened. A widened rule forbids everything under the start of its pattern: the
text before the first wildcard (at most `MAX_WIDENED_START` letters), or the first folder of the path. So a file with
too many rules can forbid more than it says, never less. Rules with wildcards count as widened also for a URL that is
too long to compare with them: those beyond the work that one URL may cost (`MAX_STEPS`).
"""

from __future__ import annotations

import re
import sys
from collections import OrderedDict
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import quote

MAX_RULES: Final = 5_000
MAX_WILDCARDS: Final = 1_000
MAX_WIDENED: Final = 1_000
MAX_PATTERN: Final = 8_192
MAX_STEPS: Final = 20_000_000
"""The most steps that the comparison of one path with all wildcard patterns may take, about 0.3 ns each: 500 ordinary
patterns and a path of 4,000 letters need 17 million."""
# `str.find` compares letters in one step each (0.3 ns), and looks in eight of them (2.3 ns) for where to compare.
_LOOK: Final = 8
MAX_LETTERS: Final = 1 << 20
"""The most letters of the exact rules of a group, comparable and as written."""
MAX_WIDENED_START: Final = 512
# Compiled groups above this size are cached within a limit of memory: one may take megabytes.
_LARGE: Final = 8_192

_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})")
# A start that is cut within an escape would match other paths.
_CUT_ESCAPE: Final = re.compile(r"%[0-9A-Fa-f]?\Z")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
# Characters that `quote` must not change, because they are already escaped or have a meaning.
_SAFE: Final = "%/?:@!&'()*+,;=[]#$~|^{}\"<>\\`"


class Rule(NamedTuple):
    """One rule of our group. `pieces` are the texts between the `*` of the pattern.

    Of all rules that match, the one with the highest `priority` decides: the length of the pattern in the file.
    """

    allow: bool
    text: str
    pieces: tuple[str, ...]
    anchored: bool
    priority: int

    def matches(self, path: str) -> bool:
        """Match in one pass over the path: it is enough to take each piece at its first position."""
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

    @property
    def rank(self) -> tuple[int, bool]:
        """The longest pattern decides. Of two equally long patterns, the one that allows decides."""
        return self.priority, self.allow


class RobotsGroup:
    """A compiled group. Patterns without wildcards are looked up; the others are tried one by one.

    Hosts in turn may compile thousands of rules for each URL, so this only sorts the lines. A rule is made of a line
    when it is needed.
    """

    __slots__ = ("_exact", "_lengths", "_starts", "_steps", "_together", "_widened", "_widened_lengths", "_wild")

    def __init__(self, group: str) -> None:
        self._starts: dict[str, str] = {}
        """The line of each start, or only its sign if the start is the rest of the line."""
        self._exact: dict[str, str] = {}
        self._widened: dict[str, str] = {}
        wild: list[Rule] = []
        starts = self._starts
        for line in group.split("\n"):
            pattern = line[1:].partition(" ")[0] if " " in line else line[1:]
            if line[0] == "!":
                self._widened[_rule(line).pieces[0]] = line
            elif "*" in pattern:
                wild.append(_rule(line))
            elif "$" in pattern:
                self._look_up(line, pattern)
            else:  # no pattern with the same start is longer
                starts[pattern] = line if " " in line else line[0]
        self._wild = tuple(sorted(wild, key=lambda rule: rule.rank, reverse=True))
        # At worst, each letter of the longest piece is compared at each letter of the path.
        self._steps = sum(_LOOK + max(map(len, rule.pieces[1:])) for rule in wild)
        self._lengths = sorted(set(map(len, starts)), reverse=True)
        self._widened_lengths = set(map(len, self._widened))
        self._together = (*starts, *self._widened)

    def _look_up(self, line: str, pattern: str) -> None:
        """A rule with `$`. Before the end of the pattern it is escaped, as in paths. So several may have one start."""
        place = self._exact if pattern.endswith("$") else self._starts
        start = pattern.removesuffix("$").replace("$", "%24")
        if start not in place or _rule(line).rank > _rule_of(place[start], start).rank:
            place[start] = line

    def rule_for(self, path: str) -> Rule | None:
        """The rule that decides about a path; None if no rule matches it."""
        best = _rule(self._exact[path]) if path in self._exact else None
        # For most URLs of most hosts, this one call in C is enough.
        if path.startswith(self._together):
            best = self._best_start(path, best)
        # For most URLs, even the worst case of all rules is cheap, so their work need not be counted.
        budget = _Budget(path) if self._steps * len(path) > MAX_STEPS else None
        for rule in self._wild:
            if best is not None and rule.rank <= best.rank:
                break
            if budget is None or budget.covers(rule):
                if rule.matches(path):
                    return rule
            elif not rule.allow:
                return rule._replace(text=f"{rule.text} (compared up to its first *, because the URL is too long)")
        return best

    def _best_start(self, path: str, best: Rule | None) -> Rule | None:
        for length in self._lengths:  # the longest first: no start has a higher priority than its length
            if best is not None and best.priority > length:
                break
            if (line := self._starts.get(path[:length])) is not None:
                best = _better(_rule_of(line, path[:length]), best)
        for length in self._widened_lengths:
            if (line := self._widened.get(path[:length])) is not None:
                best = _better(_rule(line), best)
        return best


class _Budget:
    """The steps that may still be spent on one path."""

    __slots__ = ("_left", "_letters", "_path")

    def __init__(self, path: str) -> None:
        self._path = path
        self._left = MAX_STEPS
        self._letters = {letter: path.count(letter) for letter in set(path)}

    def covers(self, rule: Rule) -> bool:
        """Take the steps of a rule from what is left; False if they are too many. A rule that starts otherwise than
        the path takes none."""
        if not self._path.startswith(rule.pieces[0]):
            return True
        steps = self._most_steps(rule)
        if steps > self._left:
            return False
        self._left -= steps
        return True

    def _most_steps(self, rule: Rule) -> int:
        """A limit for the steps of `Rule.matches`, which goes over the path once.

        `str.find` compares a piece only where its last letter fits, and goes on only where its first letter does.
        """
        pieces = rule.pieces[1:-1] if rule.anchored else rule.pieces[1:]  # an anchored end is not searched
        size, longest = len(self._path), max(map(len, pieces), default=0)
        if longest < 2:  # a letter is found at once
            return 0
        compared = sum(self._fitting(piece) * len(piece) for piece in pieces)
        return _LOOK * (size + longest) + min(compared, longest * size)

    def _fitting(self, piece: str) -> int:
        """In how many places of the path the first and the last letter of a piece may fit."""
        return min(self._letters.get(piece[0], 0), self._letters.get(piece[-1], 0)) if piece else 0


def group_text(lines: Iterable[tuple[bool, str]]) -> str:
    """The rules (whether it allows, and its pattern) as text, one rule per line, within the limits.

    A line is `+` or `-` and the comparable pattern. If the file writes it otherwise, that follows after a space. A
    widened rule is `!`, its priority, a space, and the start that it forbids.
    """
    kept: dict[str, str] = {}
    widened: dict[str, int] = {}
    wildcards = letters = 0
    for allow, value in lines:
        pattern = _pattern(value)
        line = ("+" if allow else "-") + (pattern if pattern == value else f"{pattern} {value}")
        known = kept.get(pattern)
        if known is not None and not (allow and known[0] == "-"):
            continue
        stars = value.count("*") if known is None else 0
        few = len(kept) + (known is None) <= MAX_RULES
        short = max(len(value), len(pattern)) <= MAX_PATTERN and letters + len(line) <= MAX_LETTERS
        if few and short and wildcards + stars <= MAX_WILDCARDS:
            kept[pattern] = line
            wildcards += stars
            letters += len(line)
        elif not allow:
            _widen(pattern, widened, only_wildcards=few)
    return "\n".join([*kept.values(), *(f"!{priority} {start}" for start, priority in widened.items())])


def _widen(pattern: str, widened: dict[str, int], *, only_wildcards: bool) -> None:
    start = pattern[:MAX_WIDENED_START].partition("*")[0].removesuffix("$")
    if not only_wildcards:
        start = "/".join(start.split("/", 2)[:2]) + ("/" if start.count("/") > 1 else "")
    start = _CUT_ESCAPE.sub("", start)
    if start not in widened and len(widened) >= MAX_WIDENED:
        start = ""
    widened[start] = max(widened.get(start, 0), len(pattern))


class _CompiledGroups:
    """The compiled groups that were used last, within a limit of memory."""

    def __init__(self, most_bytes: int) -> None:
        self._groups: OrderedDict[str, RobotsGroup] = OrderedDict()
        self._most = most_bytes
        self._bytes = 0

    def of(self, group: str) -> RobotsGroup:
        compiled = self._groups.get(group)
        if compiled is not None:
            self._groups.move_to_end(group)
            return compiled
        compiled = self._groups[group] = RobotsGroup(group)
        self._bytes += _compiled_bytes(group)
        while self._bytes > self._most and len(self._groups) > 1:
            dropped, _ = self._groups.popitem(last=False)
            self._bytes -= _compiled_bytes(dropped)
        return compiled


def _compiled_bytes(group: str) -> int:
    """About what a compiled group takes, with its text."""
    return 2 * sys.getsizeof(group) + 250 * group.count("\n")


_LARGE_GROUPS: Final = _CompiledGroups(64 << 20)


def rules_of(group: str) -> RobotsGroup:
    """The compiled rules of a group's text."""
    return _LARGE_GROUPS.of(group) if len(group) > _LARGE else _compile_small(group)


@lru_cache(maxsize=4096)
def _compile_small(group: str) -> RobotsGroup:
    return RobotsGroup(group)


def _better(rule: Rule, other: Rule | None) -> Rule:
    return rule if other is None or rule.rank > other.rank else other


def _rule_of(line: str, start: str) -> Rule:
    """The rule of a line, or of a sign and its start."""
    return _rule(line if len(line) > 1 else line + start)


def _rule(line: str) -> Rule:
    if line[0] == "!":
        number, _, start = line[1:].partition(" ")
        text = f"robots.txt has too many rules: everything under {start[:200] or '/'} counts as forbidden"
        return Rule(False, text, (start.replace("$", "%24"),), False, int(number))
    allow = line[0] == "+"
    pattern, _, value = line[1:].partition(" ")
    priority = len(pattern)
    anchored = pattern.endswith("$")
    text = f"{'Allow' if allow else 'Disallow'}: {value or pattern}"
    if anchored:
        pattern = pattern[:-1]
    # In the middle of a pattern, `$` is a normal character, and comparable paths have it escaped.
    pieces = pattern.replace("$", "%24").split("*")
    inner = [piece for piece in pieces[1:-1] if piece]
    return Rule(allow, text, (pieces[0], *inner, pieces[-1]) if len(pieces) > 1 else (pieces[0],), anchored, priority)


def _pattern(value: str) -> str:
    return _comparable(value if value[0] in "/*" else "/" + value)


def comparable_path(url: str) -> str:
    """Path and query of a canonical URL, in the form that is compared with patterns."""
    start = url.find("/", url.find("://") + 3)
    path = url[start:].partition("#")[0] if start >= 0 else "/"
    if "*" in path or "$" in path:
        path = path.replace("*", "%2A").replace("$", "%24")
    return _comparable(path)


def _comparable(text: str) -> str:
    """The text with escapes in upper case, without unnecessary escapes, and with non-ASCII characters escaped."""
    if not text.isascii() or " " in text:
        text = quote(text, safe=_SAFE)
    return _ESCAPE.sub(_settle, text) if "%" in text else text


def _settle(escape: re.Match[str]) -> str:
    return _SETTLED[escape[0]]


_HEX: Final = "0123456789abcdefABCDEF"
_SETTLED: Final = {
    f"%{high}{low}": chr(code) if chr(code := int(high + low, 16)) in _UNRESERVED else f"%{high}{low}".upper()
    for high in _HEX
    for low in _HEX
}
