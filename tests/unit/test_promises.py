"""Each promise in SECURITY.md names a test that exists."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "SECURITY.md").read_text()
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def functions(path: Path) -> set[str]:
    nodes = ast.walk(ast.parse(path.read_text()))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_each_test_that_security_names_exists() -> None:
    named = NAMED.findall(TEXT)
    missing = [
        f"{file}::{test}"
        for file, test in named
        if not (ROOT / file).is_file() or test not in functions(ROOT / file) or not test.startswith("test_")
    ]
    assert named
    assert missing == []


def test_each_promise_names_a_test() -> None:
    promises = TEXT.partition("\n## Promises\n")[2].partition("\n## ")[0]
    rows = [line for line in promises.splitlines() if line.startswith("|") and not line.startswith("|---")]
    assert len(rows) > 10
    assert [row for row in rows if not NAMED.search(row) and row != "| promise | test |"] == []
