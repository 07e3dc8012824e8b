"""The repository stands alone: no path leads out of it, and no text refers to a document that is not in it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.test_house import ROOT, everything, name

ABOVE = 3  # levels above a file in tests/crawl: outside of the repository
UPWARDS = re.compile(r"(?<![\w/.])(?:\.\./)+[\w./-]*")
# Written in pieces, so that this file does not find itself.
ABSENT = re.compile(
    r"\b(DES" + r"IGN|MEAS" + r"URED|STYL" + r"E\.md)\b|\u00a7 ?\d|test data beside the " + r"repository"
)
DOCUMENT = re.compile(r"(?<![\w/.*-])((?:\.?\./)*(?:[\w.-]+/)*[\w.-]+\.md)\b(?!:)")
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")


def texts() -> Iterator[tuple[Path, str]]:
    for path in everything():
        try:
            yield path, path.read_text()
        except UnicodeDecodeError:
            continue


def climbs(path: Path, tree: ast.AST) -> Iterator[int]:
    """The lines of a module that build a path to a place above the root of the repository."""
    roots = {"ROOT", "root"}
    depth = len(path.relative_to(ROOT).parts)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Subscript) and steps_up(node, roots, depth) > depth + 1:
            yield node.lineno
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and names_the_folder_above(node.right):
            yield node.lineno
        if isinstance(node, ast.Call) and called(node) in {"Path", "open", "joinpath", "chdir", "read_text", "glob"}:
            yield from (node.lineno for given in node.args if names_the_folder_above(given))


def steps_up(node: ast.expr, roots: set[str], depth: int) -> int:
    """How many folders an expression goes up from the file it stands in; 0 if it is about something else."""
    match node:
        case ast.Attribute(value=inner, attr="parent"):
            below = steps_up(inner, roots, depth)
            return below + 1 if below else 0
        case ast.Subscript(value=ast.Attribute(value=inner, attr="parents"), slice=ast.Constant(value=int(number))):
            below = steps_up(inner, roots, depth)
            return below + number + 1 if below else 0
        case ast.Call(func=ast.Attribute(value=inner, attr="resolve" | "absolute")):
            return steps_up(inner, roots, depth)
        case ast.Call(func=ast.Name(id="Path"), args=[ast.Name(id="__file__")]):
            return 1  # the file itself; its folder is 2, and the root is one more than the depth of the file
        case ast.Name(id=named) if named in roots:
            return depth + 1
    return 0


def called(node: ast.Call) -> str:
    match node.func:
        case ast.Name(id=named) | ast.Attribute(attr=named):
            return named
    return ""


def names_the_folder_above(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and ".." in Path(node.value).parts


def outside(path: Path, text: str) -> list[str]:
    """Every place in one file that leads out of the repository."""
    if path.suffix == ".py":
        return [f"{name(path)}:{line}" for line in climbs(path, ast.parse(text))]
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        for upwards in UPWARDS.findall(line):
            if not (path.parent / upwards).resolve().is_relative_to(ROOT):
                found.append(f"{name(path)}:{number}")
    return found


@pytest.mark.parametrize(
    "code",
    [
        f'DATA = Path(__file__).parents[{ABOVE}] / "elsewhere"',
        f'DATA = Path(__file__).resolve().parents[{ABOVE}] / "elsewhere"',
        'DATA = ROOT.parent / "elsewhere"',
        "DATA = ROOT.parents[0]",
        "DATA = Path(__file__).parent.parent.parent.parent",
        'DATA = ROOT / "../elsewhere"',
        'DATA = Path("../elsewhere/data").read_text()',
        'open("../elsewhere/data")',
    ],
)
def test_code_that_leaves_the_tree_is_found(code: str) -> None:
    assert outside(ROOT / "tests" / "crawl" / "test_x.py", code) == ["tests/crawl/test_x.py:1"]


@pytest.mark.parametrize(
    "code",
    [
        'DATA = Path(__file__).parents[2] / "docs"',
        "DATA = Path(__file__).parent.parent.parent",
        'url = "../elsewhere"',
        "folder = tmp_path.parent.parent.parent.parent",
    ],
)
def test_code_that_stays_in_the_tree_is_allowed(code: str) -> None:
    assert outside(ROOT / "tests" / "crawl" / "test_x.py", code) == []


@pytest.mark.parametrize("text", ["see ../elsewhere/data", "[the design](../elsewhere/x.md)", "cp `../x` here"])
def test_text_that_leaves_the_tree_is_found(text: str) -> None:
    assert outside(ROOT / "README.md", text) == ["README.md:1"]
    assert outside(ROOT / "docs" / "how-to" / "api.md", "see ../../SECURITY.md") == []


def test_no_path_leaves_the_tree() -> None:
    assert [place for path, text in texts() for place in outside(path, text)] == []


def test_no_text_refers_to_a_document_that_is_not_in_the_tree() -> None:
    found = []
    for path, text in texts():
        for number, line in enumerate(text.splitlines(), 1):
            # Tests make up the names of files that programs write.
            named = [] if path.is_relative_to(ROOT / "tests") else DOCUMENT.findall(line)
            if ABSENT.search(line) or not all(is_there(path, each) for each in named):
                found.append(f"{name(path)}:{number}: {line.strip()[:80]}")
    assert found == []


def is_there(path: Path, named: str) -> bool:
    """Whether a document exists, seen from the file that names it, from the root, or from docs/."""
    if named.startswith("example.com/"):
        return True  # a page that was exported
    return any((place / named).exists() for place in (path.parent, ROOT, ROOT / "docs", ROOT / "docs" / "reference"))


def test_every_link_between_documents_leads_to_a_file() -> None:
    found = []
    for path, text in texts():
        if path.suffix == ".md" and path.name != "CHANGELOG.md":
            links = [link for link in LINK.findall(text) if "://" not in link and not link.startswith("mailto:")]
            found += [f"{name(path)}: {link}" for link in links if not (path.parent / link).exists()]
    assert found == []
