"""What large robots.txt files cost for each URL, if many hosts with one take turns."""

from collections import Counter
from functools import partial
from typing import Any

import pytest

from silkline.crawl.foreign_readings import is_sound
from silkline.fetch import robots_matching
from silkline.fetch.robots import MAX_BYTES, Robots, read
from silkline.fetch.robots_matching import MAX_LETTERS, MAX_RULES, MAX_WIDENED, MAX_WIDENED_START, RobotsGroup
from tests.unit.test_waiting_ends import NEVER, Answer, Site, SlowReader, crawl

SITE = "https://a.example"
LONGEST_GROUP = MAX_LETTERS + MAX_RULES + (MAX_WIDENED + 1) * (MAX_WIDENED_START + 12)


def file_of(lines: list[str]) -> bytes:
    return ("User-agent: *\n" + "\n".join(lines)).encode()[:MAX_BYTES]


ESCAPES = file_of([f"Disallow: /{'%7e' * 28}{number}" for number in range(MAX_RULES - 1)])
DOLLARS = file_of([f"Disallow: /a${number}{'b' * 70}" for number in range(MAX_RULES)])
SPACES = file_of([f"Disallow: /a{' ' * 40}{number}" for number in range(MAX_RULES)])


@pytest.mark.parametrize("body", [ESCAPES, DOLLARS, SPACES], ids=["escapes", "dollars", "spaces"])
def test_compiling_large_rules_makes_no_rule_and_compares_no_pattern(body: bytes) -> None:
    """40 hosts with such a file took turns: each URL compiled 5,000 rules in 55 ms, and the crawl almost stopped."""
    group = read(body, 1.0).group
    calls: Counter[str] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_rule", "_comparable"):
            work = getattr(robots_matching, name)
            patch.setattr(
                robots_matching, name, lambda value, name=name, work=work: (calls.update([name]), work(value))[1]
            )
        compiled = RobotsGroup(group)
        assert compiled.rule_for("/else") is None
    assert not calls


def test_an_ordinary_large_file_is_judged_exactly() -> None:
    lines = [f"Disallow: /каталог/раздел {number}/private/%7Euser" for number in range(2_500)]
    lines += [f"Allow: /каталог/раздел {number}/private/%7Euser/open" for number in range(2_500)]
    body = file_of(lines)
    assert 200_000 < len(body) < MAX_BYTES
    found = read(body, 1.0)
    assert is_sound(found)
    for number in (0, 7, 2_499):
        path = f"/%D0%BA%D0%B0%D1%82%D0%B0%D0%BB%D0%BE%D0%B3/%D1%80%D0%B0%D0%B7%D0%B4%D0%B5%D0%BB%20{number}/private"
        assert found.allows(f"{SITE}{path}/other")
        assert found.explain(f"{SITE}{path}/~user/x") == f"Disallow: /каталог/раздел {number}/private/%7Euser"
        assert found.allows(f"{SITE}{path}/~user/open/x")
    assert "!" not in found.group


@pytest.mark.parametrize("letter", ["\xff", "ж", "💥", " a", "%7e"])
@pytest.mark.parametrize("size", [60, 90, 3_000, 9_000])
@pytest.mark.parametrize("star", ["", "*"])
def test_no_file_makes_a_group_of_more_than_two_megabytes(letter: str, size: int, star: str) -> None:
    """A byte that is no UTF-8 becomes nine letters."""
    encoding = "latin-1" if letter == "\xff" else "utf-8"
    rules = (f"Disallow: /{number}/{letter * size}{star}\n" for number in range(MAX_BYTES // size))
    found = read((b"user-agent: *\n" + "".join(rules).encode(encoding))[:MAX_BYTES], 1.0)
    assert len(found.group) <= LONGEST_GROUP < 2 << 20
    assert is_sound(found)
    assert not found.allows(f"{SITE}/0/{letter * size}x") or size == 9_000 or letter == "\xff"


def test_rules_beyond_the_letters_forbid_more_and_never_less() -> None:
    lines = [f"disallow: /a{number}/{' ' * 200}x" for number in range(1_900)]
    found = read(file_of([*lines, f"allow: /a1899/{' ' * 200}x"]), 1.0)
    assert found.group.count("!") > 100
    assert not any(found.allows(f"{SITE}/a{number}/{'%20' * 200}x") for number in (0, 1_000, 1_899))
    assert found.allows(f"{SITE}/a0/{'%20' * 200}y")
    assert found.allows(f"{SITE}/a1899/other")


def test_the_same_pattern_is_one_rule_and_may_be_allowed() -> None:
    found = read(b"user-agent: *\ndisallow: /%7ea\nallow: ~a\ndisallow: /~a", 1.0)
    assert found.group == "+/~a ~a"
    assert found.explain(f"{SITE}/~a") == "Allow: ~a"


def test_compiled_groups_are_kept_by_their_size() -> None:
    groups = robots_matching._CompiledGroups(600_000)
    texts = [read(file_of([f"Disallow: /{host}/{number}" for number in range(800)]), 1.0).group for host in range(9)]
    for text in texts:
        groups.of(text)
    kept = list(groups._groups)
    assert kept == texts[-len(kept) :]
    assert 1 < len(kept) < 9
    assert groups.of(kept[0]) is groups._groups[kept[0]]
    assert next(reversed(groups._groups)) == kept[0], "the longest unused one goes first"
    assert groups._bytes == sum(map(robots_matching._compiled_bytes, groups._groups)) <= 600_000
    one = robots_matching._CompiledGroups(1)
    assert one.of(texts[0]) is one.of(texts[0]), "the last one is always kept"


class CountingReader(SlowReader):
    def __init__(self, counts: Counter[str]) -> None:
        super().__init__(12 << 20, 0.5, evicts=False)
        self._counts = counts

    def refusal(self, rules: Robots, url: str) -> str | None:
        self._counts[url] += 1
        return rules.refusal(url)


def test_a_url_that_is_put_back_is_compared_once() -> None:
    """A URL whose host must wait for its address was compared again each time."""
    rules: Any = Answer(b"User-agent: *\nDisallow: /private")
    sites = [Site(1, 0, [[Answer(seconds=4.0)] for _ in range(6)], robots=rules) for _ in range(10)]
    counts: Counter[str] = Counter()
    run = crawl(sites, partial(CountingReader, counts), NEVER)
    assert run.left == {}
    assert counts == dict.fromkeys(run.ended, 1)
