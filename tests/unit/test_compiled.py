"""The compiled modules of the page reader are there where they can be, are up to date, and change no result."""

import json
import random
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import silkline.parse
from hatch_build import MODULES, compile_in_place, compiled_modules
from silkline.cli.checks import page_reader
from silkline.model.page import Wanted
from silkline.model.url import KEEP_ALL, UrlRules, canonical, canonical_links
from silkline.parse.decision_trees import DecisionTrees
from silkline.parse.html import parse_page
from silkline.parse.letters import stripped_length, words
from silkline.parse.link_resolution import resolve
from silkline.parse.tag_search import count_tags as count_in_python
from tests.conftest import ROOT

PARSE = Path(silkline.parse.__file__).parent
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
CAN_COMPILE = (
    shutil.which((sysconfig.get_config_var("CC") or "gcc").split()[0]) is not None
    and Path(sysconfig.get_path("include"), "Python.h").exists()
)
# Finds only the sources of Silkline, as on a machine where nothing was compiled.
IN_PYTHON = """
import importlib.machinery, json, sys
sources = importlib.machinery.SourceFileLoader, [".py"]
finder = importlib.machinery.FileFinder.path_hook(sources)
def only_sources(path):
    if not path.startswith(sys.argv[1]):
        raise ImportError
    return finder(path)
sys.path_hooks.insert(0, only_sources)
sys.path_importer_cache.clear()
from silkline.model.page import Wanted
from silkline.parse import outline, bomb_guard
from silkline.parse.html import parse_page
assert outline.__file__.endswith(".py") and bomb_guard.count_tags.__module__.endswith("tag_search")
for page in json.load(sys.stdin):
    read = parse_page(page.encode(), "https://example.com/a/b", Wanted(content="markdown"))
    said = read.extraction
    links = [link.url for link in read.links]
    print(json.dumps([read.markdown, said.rule, said.kept, said.words, said.confidence, links]))
"""
NAMES = [
    "article",
    "post-body",
    "sideBar",
    "comments",
    "menu",
    "nav-links",
    "cookie",
    "HTMLContent",
    "card",
    "price",
    "related",
    "x1",
]
BLOCKS = ("div", "p", "li", "section", "article", "aside", "nav", "td", "h1", "h2", "blockquote", "pre", "footer")
SENTENCES = (
    "The old mill stands at the end of the valley. ",
    "Read more",
    "A line, and one more. " * 12,
    "12 Mai 2024",
)


def page(seed: int) -> str:
    """A page of random elements, with names that the page model knows and others."""
    choose = random.Random(seed)

    def inside(depth: int) -> str:
        if depth > 7 or choose.random() < 0.25:
            text = choose.choice(SENTENCES)
            return f"<a href=/{choose.randrange(9)}>{text}</a>" if choose.random() < 0.3 else text
        parts = []
        for _ in range(choose.randrange(1, 5)):
            tag, name = choose.choice(BLOCKS), " ".join(choose.sample(NAMES, choose.randrange(3)))
            sign = choose.choice(("", "", " id=main", " role=navigation", " hidden", " style='display:none'"))
            element = f"<{tag} class='{name}'{sign}>{inside(depth + 1)}</{tag}>"
            parts.append(element * choose.choice((1, 1, 1, 6)))
        return "".join(parts)

    return f"<title>Mills</title><body>{inside(0)}"


def test_modules_are_compiled_where_that_is_possible():
    missing = [name for name in MODULES if not (PARSE / f"{name.partition('.')[0]}{SUFFIX}").exists()]
    assert missing == ([] if CAN_COMPILE else list(MODULES))
    assert page_reader().level == ("ok" if CAN_COMPILE else "warn")


def test_modules_that_another_python_compiled_do_not_count(monkeypatch):
    monkeypatch.setattr(sysconfig, "get_config_var", {"EXT_SUFFIX": ".cpython-399-x86_64-linux-gnu.so"}.get)
    assert page_reader().level == "warn"


@pytest.mark.parametrize("name", MODULES)
def test_a_compiled_module_is_not_older_than_its_source(name: str):
    stem = name.partition(".")[0]
    compiled = PARSE / f"{stem}{SUFFIX}"
    sources = [PARSE / name, *([PARSE / f"{stem}.pxd"] if name.endswith(".py") else [])]
    if compiled.exists():
        assert max(source.stat().st_mtime for source in sources) <= compiled.stat().st_mtime, "run make"


def test_without_compiled_modules_the_results_are_the_same():
    pages = [page(seed) for seed in range(24)]
    here = []
    for one in pages:
        read = parse_page(one.encode(), "https://example.com/a/b", Wanted(content="markdown"))
        said = read.extraction
        assert said is not None
        links = [link.url for link in read.links]
        here.append([read.markdown, said.rule, said.kept, said.words, said.confidence, links])
    assert len({rule for _, rule, *_ in here}) > 2, "pages of several sorts"
    elsewhere = subprocess.run(
        [sys.executable, "-c", IN_PYTHON, str(PARSE.parent)], input=json.dumps(pages), stdout=subprocess.PIPE, text=True
    )
    assert elsewhere.returncode == 0
    assert [json.loads(line) for line in elsewhere.stdout.splitlines()] == here


def test_a_machine_without_a_compiler_is_told_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CC", "/no/such/compiler")
    assert compiled_modules(ROOT, tmp_path) == []
    assert "slower" in capsys.readouterr().err


def test_compiled_modules_are_replaced(tmp_path):
    two = 'MODULES = ("letters.py", "tag_counts.pyx")'  # all of them take half a minute
    program, count = re.subn(r"MODULES = \([^)]*\)", two, (ROOT / "hatch_build.py").read_text())
    assert count == 1
    (tmp_path / "hatch_build.py").write_text(program)
    shutil.copytree(
        PARSE, tmp_path / "src" / "silkline" / "parse", ignore=shutil.ignore_patterns("__pycache__", "*.so")
    )
    parse = tmp_path / "src" / "silkline" / "parse"
    old = [parse / f"removed{SUFFIX}", parse / "letters.cpython-399-x86_64-linux-gnu.so"]
    for each in old:
        each.touch()
    assert compile_in_place(tmp_path) is CAN_COMPILE
    assert not [each for each in old if each.exists()]
    assert len(list(parse.glob("*" + SUFFIX))) == (2 if CAN_COMPILE else 0)
    assert not list(parse.glob(".*"))


TAGS = (
    "b",
    "I",
    "u",
    "s",
    "em",
    "TT",
    "big",
    "code",
    "font",
    "small",
    "strike",
    "Strong",
    "html",
    "BODY",
    "p",
    "bold",
    "smaller",
    "ta",
)
PIECES = st.sampled_from(
    [f"<{tag}{end}" for tag in TAGS for end in (">", " a=b>", "/>", "\n>", "x>", "")] + ["</b>", "<", "text", "é"]
)


@pytest.mark.skipif(not CAN_COMPILE, reason="there is nothing to compare")
@given(st.lists(PIECES, max_size=40))
def test_tags_are_counted_alike(pieces):
    from silkline.parse.tag_counts import count_tags

    body = "".join(pieces).encode()
    assert count_tags(body) == count_in_python(body)


@pytest.mark.skipif(not CAN_COMPILE, reason="Python code checks it by itself")
@pytest.mark.parametrize(
    "call",
    [
        "fast_word_count.count_words([None])",
        "fast_word_count.count_words(['a', None])",
        "fast_word_count.count_words(None)",
        "plain_links.plain_links([None], 'https://a.example', '/')",
        "plain_links.plain_links(['/a', None], 'https://ä.example', '/')",
        "plain_links.plain_links(None, 'https://a.example', '/')",
        "plain_links.plain_links(['/a'], None, '/')",
        "plain_links.plain_links(['/a'], 'https://a.example', None)",
        "tag_counts.count_tags(None)",
        "letters.words(None)",
        "letters.stripped_length(None)",
    ],
)
def test_compiled_code_reads_no_letters_of_none(call: str):
    """In a process of its own: it would read memory that is no text."""
    module = f"silkline.parse.{call.partition('.')[0]}"
    done = subprocess.run(
        [sys.executable, "-c", f"import {module}\nsilkline.parse.{call}"], stderr=subprocess.PIPE, text=True
    )
    assert "\nTypeError: " in done.stderr


PARTS = [
    "/",
    "//",
    ".",
    "..",
    "?",
    "#",
    "%",
    "%2F",
    "%41",
    "%2d",
    "%E4",
    ":",
    "a",
    "b.c",
    "HTTP",
    "http://",
    "https://",
    "http:",
    "xn--a",
    "127.1",
    "1.2.3.4",
    "0x7f.1",
    "-",
    "_",
    "a-b.de",
    "Ex.Org",
    ".com",
    ":80",
    ":443",
    "https://h.example",
    "http://a.b/",
    "'",
    "(",
    "é",
    "@",
    "[",
    "{",
    "^",
    "|",
    "~",
    ";",
    "&",
    "=",
    "+",
    "*",
    "!",
    "$",
    ",",
    "\\",
    "中",
]
PARTS += [
    "1.2.3.4:8080/",
    "https://127.0.0.1:443/",
    "http://127.0.0.1:81/a",
    "http://1.2.3",
    "http://01.2.3.4/",
    "http://1.2.3.256/",
]
PARTS += [
    "http://1.2.3.4.5/",
    "http://a.example:80/",
    "http://a.example:0/",
    "http://a.example:65536/b",
    "https://a.example:65535/",
]
PARTS += ["http://1.2.3.4./", "http://1..2.3/", "http://a.1/", "http://1.2.3.4a/", "255", "0", ".1"]
HREFS = st.lists(st.sampled_from([*PARTS, " ", "\t", "\n", "\x00", "a" * 253, "b" * 8_180]), max_size=6).map("".join)
BASES = (
    "https://h.example/",
    "https://h.example/a/b?q=/x/y",
    "http://h.example:8080/a/b/",
    "https://H.example/x/y.html",
)


@given(st.sampled_from(BASES), st.lists(HREFS, max_size=4))
def test_links_are_resolved_as_by_the_parser(base, hrefs):
    assert resolve(base, hrefs, KEEP_ALL) == [canonical(href, KEEP_ALL, base) for href in hrefs]
    assert resolve(base, hrefs, UrlRules(drop_tracking=True)) == canonical_links(
        base, hrefs, UrlRules(drop_tracking=True)
    )


@pytest.mark.skipif(not CAN_COMPILE, reason="there is nothing to compare")
def test_most_links_need_no_parser():
    from silkline.parse.plain_links import plain_links

    hrefs = ["/a/b.html?c=d&e#f", "g.html", "https://www.other.example/%C3%A4/", "https://h.example:81/x"]
    assert plain_links([*hrefs, "/%2e", "i/../j", "k:l", "#m"], "https://h.example:81", "https://h.example:81/n/") == [
        "https://h.example:81/a/b.html?c=d&e",
        "https://h.example:81/n/g.html",
        "https://www.other.example/%C3%A4/",
        "https://h.example:81/x",
        None,
        None,
        None,
        None,
    ]


CAMELS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@given(st.text(alphabet="abzABZ-_1 éÀß", max_size=30))
def test_words_of_names(names):
    assert words(names) == [word.lower() for word in CAMELS.findall(names)]


@given(st.text(alphabet=" \t\n\u00a0\u2003a\u4e2d"))
def test_length_without_white_space(text):
    assert stripped_length(text) == len(text.strip())


def test_trees_follow_their_limits():
    trees = DecisionTrees([[1, 0.5, -1.0, [0, 2.0, 0.25, 3]], 0.75], 3)
    assert trees.probability((2.0,), (0.5,), (9.0,)) == pytest.approx(1 / (1 + 2.718281828459045**0.25))
    assert trees.probability((2.0,), (0.6,), ()) == pytest.approx(1 / (1 + 2.718281828459045**-1))
    assert trees.probability((2.1,), (0.6,), ()) == pytest.approx(1 / (1 + 2.718281828459045**-3.75))


@pytest.mark.parametrize("place", [3, -1])
def test_a_tree_that_looks_beyond_its_row_is_refused(place):
    with pytest.raises(ValueError, match=f"number {place} of 3"):
        DecisionTrees([[place, 0.5, -1.0, 1.0]], 3)


def test_a_row_that_is_too_long_is_refused():
    trees = DecisionTrees([0.5], 3)
    with pytest.raises(ValueError, match="more than 3"):
        trees.probability((1.0, 2.0), (3.0,), (4.0,))
