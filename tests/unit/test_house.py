"""The house is as ARCHITECTURE.md shows it and as our conventions want it."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeGuard

import grimp
import pytest

from silkline.model.job import TRANSITIONS

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "silkline"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CODE = {".py", ".sql", ".html", ".css", ".js", ".sh"}
MOST_LINES = 500
NOT_OURS = {"__pycache__", "vendor"}
SQL = re.compile(
    r"\s*(select\s.+\sfrom\s|insert\s+(or\s+\w+\s+)?into\s|update\s+\w+\s+set\s|delete\s+from\s|with\s+\w+\s+as\s*\(|"
    r"(create|alter|drop)\s+(unique\s+)?(table|index|database)\s|pragma\s+\w+\s*[=(;]|begin\s+immediate)",
    re.IGNORECASE | re.DOTALL,
)
# Written in pieces, so that this file does not find itself.
REGISTRY = re.compile(r"https?://\S*(py" + r"pi\b|python" + r"hosted|npm" + r"js\.|deb" + r"ian\.org)")
MACHINE = re.compile(r"(?<![\w./])/(root|home/\w+|Users/\w+|work/(main|shared|trees|wt-\w+))/")


def files(*folders: str) -> Iterator[Path]:
    """Every file of ours: not what others made (vendored scripts), not pages kept as test data."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            parts = path.relative_to(ROOT).parts
            if path.is_file() and not NOT_OURS & set(parts) and parts[:2] != ("tests", "data"):
                yield path


def everything() -> list[Path]:
    at_the_top = [*ROOT.glob("*.md"), *ROOT.glob("*.toml"), *ROOT.glob("*.yaml")]
    at_the_top += [ROOT / "Makefile", ROOT / "Dockerfile", ROOT / ".dockerignore", ROOT / ".env.example"]
    folders = ("src", "tests", "benchmarks", "deploy", "docs", "extension", "requirements", ".ci", ".github")
    return [*at_the_top, *files(*folders)]


def modules() -> list[Path]:
    return [path for path in files("src") if path.suffix == ".py"]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def blocks(language: str) -> list[str]:
    """The fenced blocks of ARCHITECTURE.md."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    return [body for found, body in re.findall(r"^```(\w*)\n(.*?)^```", text, re.M | re.S) if found == language]


def block(language: str, opening: str) -> list[str]:
    found = [text for text in blocks(language) if text.startswith(opening)]
    assert len(found) == 1, f"ARCHITECTURE.md needs exactly one block that opens with {opening!r}"
    return found[0].splitlines()


def test_the_folders_in_architecture_are_those_that_exist() -> None:
    """Every folder, and every file at the top, with its purpose."""
    entries = [path for path in SOURCE.iterdir() if not path.name.startswith(("__", "py.typed"))]
    there = {f"{path.name}/" if path.is_dir() else path.name for path in entries}
    shown = dict(re.match(r"  (\S+) +(.+)", line).groups() for line in block("", "src/silkline/\n")[1:])  # type: ignore[union-attr]
    assert set(shown) == there
    assert all(shown.values())


def test_the_layers_in_architecture_are_those_that_are_checked() -> None:
    checked = [set(re.findall(r"\w+", layer)) for layer in PYPROJECT["tool"]["importlinter"]["contracts"][0]["layers"]]
    shown = [set(re.findall(r"\w+", line.split("   ")[0])) for line in block("", "cli\n") if line[:1].strip()]
    assert shown == checked


def test_the_state_diagram_in_architecture_is_the_state_machine() -> None:
    arrows = re.findall(r"^ *(\w+) --> (\w+)", "\n".join(block("mermaid", "stateDiagram-v2\n")), re.MULTILINE)
    assert sorted(arrows) == sorted((before.value, after.value) for before, after in TRANSITIONS)


def test_the_supervisor_and_the_api_know_kinds_by_name_only() -> None:
    graph = grimp.build_graph("silkline", cache_dir=None)
    names = ("registry", "requirements", "plugin_import", "specs")
    allowed = {"silkline.kinds", *(f"silkline.kinds.{name}" for name in names)}
    for layer in ("silkline.service", "silkline.api"):
        for module in {layer} | graph.find_descendants(layer):
            known = {found for found in graph.find_upstream_modules(module) if found.startswith("silkline.kinds")}
            assert known <= allowed, module


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = grimp.build_graph("silkline", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    while leaves := {module for module, upstream in imports.items() if not upstream}:
        imports = {module: upstream - leaves for module, upstream in imports.items() if module not in leaves}
    assert imports == {}, "each of these modules is part of a circle, or imports one"


def test_no_file_is_too_long() -> None:
    lengths = {name(path): len(path.read_text().splitlines()) for path in everything() if path.suffix in CODE}
    assert {path: lines for path, lines in lengths.items() if lines > MOST_LINES} == {}


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < 150


def test_every_module_says_what_it_owns() -> None:
    assert [name(path) for path in modules() if not ast.get_docstring(ast.parse(path.read_text()))] == []


def test_every_folder_of_modules_is_a_package() -> None:
    assert [name(path.parent) for path in modules() if not (path.parent / "__init__.py").exists()] == []


def test_no_file_has_a_name_that_says_nothing() -> None:
    empty_words = {"utils", "util", "common", "helpers", "helper", "base", "manager", "misc"}
    assert [name(path) for path in modules() if empty_words & {path.stem, path.parent.name}] == []


def test_no_import_is_hidden_from_the_layers() -> None:
    assert [name(path) for path in modules() if "TYPE_CHECKING" in path.read_text()] == []


def is_sql(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(SQL.match(node.value))


@pytest.mark.parametrize("text", ["SELECT id FROM jobs", "\n update jobs set x = 1", "PRAGMA user_version = 2"])
def test_sql_is_known_when_seen(text: str) -> None:
    assert is_sql(ast.Constant(text))


@pytest.mark.parametrize("text", ["Select a job.", "update jobs", "Delete the page", "with care"])
def test_prose_is_not_taken_for_sql(text: str) -> None:
    assert not is_sql(ast.Constant(text))


def test_sql_stands_in_the_store_only() -> None:
    outside = [path for path in files("src") if "store" not in path.relative_to(SOURCE).parts[:1]]
    assert [name(path) for path in outside if path.suffix == ".sql"] == []
    nodes = [(path, node) for path in outside if path.suffix == ".py" for node in ast.walk(ast.parse(path.read_text()))]
    assert [f"{name(path)}:{node.lineno}" for path, node in nodes if is_sql(node)] == []


def names_a_place(line: str) -> bool:
    return bool(REGISTRY.search(line) or MACHINE.search(line))


def test_no_file_names_a_package_registry_or_a_folder_of_one_machine() -> None:
    found = []
    for path in everything():
        try:
            lines = path.read_text().splitlines()
        except UnicodeDecodeError:
            continue
        found += [f"{name(path)}:{number}" for number, line in enumerate(lines, 1) if names_a_place(line)]
    assert found == []


@pytest.mark.parametrize("path", list(files("requirements")), ids=name)
def test_requirements_are_pinned_with_hashes_and_name_no_index(path: Path) -> None:
    text = path.read_text()
    assert "://" not in text
    assert not re.search(r"^--", text, re.MULTILINE)
    for requirement in re.split(r"\n(?=\S)", text.strip()):
        assert re.match(r"[\w.-]+(\[[\w,]+\])?==\S+", requirement), requirement
        assert "--hash=sha256:" in requirement, requirement


def declared(*requirements: str) -> set[str]:
    return {re.split(r"[\[<>=~!; ]", requirement)[0].lower() for requirement in requirements}


def pinned(file: str) -> set[str]:
    return set(re.findall(r"^([\w.-]+)==", (ROOT / "requirements" / file).read_text().lower(), re.MULTILINE))


def test_every_dependency_is_pinned_and_has_its_reason() -> None:
    project, groups = PYPROJECT["project"], PYPROJECT["dependency-groups"]
    runtime = declared(*project["dependencies"])
    extras = declared(*(one for extra in project["optional-dependencies"].values() for one in extra))
    tools = declared(*(one for group in groups.values() for one in group if isinstance(one, str)))
    assert runtime | declared(*groups["build"]) <= pinned("base.txt")
    assert runtime | extras | tools <= pinned("dev.txt")
    reasons = set(re.findall(r"[\w-]+", (ROOT / "docs" / "decisions" / "0001-dependencies.md").read_text().lower()))
    assert runtime | extras | tools <= reasons


def test_no_digit_is_taken_for_a_number_that_python_cannot_read() -> None:
    """`isdigit` and `isnumeric` accept "²", which `int` and `float` refuse: a header with it ended a job."""
    wrong = [
        f"{name(path)}: {line.strip()}"
        for path in modules()
        for line in path.read_text().splitlines()
        if re.search(r"\.(isdigit|isnumeric)\(", line) and ".isascii()" not in line
    ]
    assert wrong == []
