"""A command imports what it needs and no more: `silkline --help` must not cost more than Python and click."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
WATCHED = {
    *("ada_url", "apsw", "asyncio", "fastapi", "isal", "jinja2", "msgspec", "multiprocessing", "playwright"),
    *("prometheus_client", "protego", "psycopg", "pycurl", "pydantic", "pypdf", "re2", "rich", "sqlite3"),
    *("tldextract", "trafilatura", "turbohtml", "uvicorn", "uvloop", "xxhash"),
}
LAYERS = {"silkline.api", "silkline.crawl", "silkline.fetch", "silkline.parse", "silkline.runner", "silkline.service"}
RUN = """
import contextlib, io, json, sys
from silkline.cli.exits import run
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as complaints:
    code = run(sys.argv[1:])
print(json.dumps([code, complaints.getvalue(), sorted(sys.modules)]))
"""


def imported(folder: Path, *arguments: str) -> tuple[int, str, set[str]]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("SILKLINE_") and name != "DATABASE_URL"
    }
    done = subprocess.run(
        [sys.executable, "-c", RUN, *arguments],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(SOURCE), "XDG_DATA_HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    code, complaints, modules = json.loads(done.stdout)
    return code, complaints, set(modules)


@pytest.mark.parametrize(
    ("arguments", "code", "may"),
    [
        (("--help",), 0, set()),
        (("--version",), 0, set()),
        (("nonsense",), 2, set()),
        (("jobs", "ls"), 0, {"apsw"}),
        (("jobs", "show", "last"), 5, {"apsw"}),
        (("jobs", "pause", "last"), 5, {"apsw"}),
        (("jobs", "add", "--kind", "youtube", "https://example.com/"), 0, {"ada_url", "apsw", "pydantic", "xxhash"}),
        (
            ("jobs", "add", "--kind", "page", "https://a.example/"),
            0,
            {"ada_url", "apsw", "msgspec", "pydantic", "xxhash"},
        ),
        (("logs", "last"), 5, {"apsw"}),
        (("results", "last"), 5, {"apsw"}),
        (("explain", "last", "example.com"), 5, {"ada_url", "apsw", "xxhash"}),
        (("workers",), 0, {"apsw"}),
        (("config",), 0, set()),
        (("db", "upgrade"), 0, {"apsw"}),
        (("doctor",), 0, {"apsw"}),
        (("--database-url", "postgresql://me@127.0.0.1:1/x", "jobs"), 1, {"asyncio", "psycopg"}),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else None,
)
def test_what_a_command_imports(tmp_path: Path, arguments: tuple[str, ...], code: int, may: set[str]) -> None:
    ended, complaints, modules = imported(tmp_path, *arguments)
    assert ended == code, complaints
    assert modules & WATCHED == may
    # `jobs add` asks the address guard about a URL that the operator typed, `doctor` for the browser of `--render`.
    assert modules & LAYERS == ({"silkline.fetch"} if "msgspec" in may or arguments == ("doctor",) else set())


@pytest.mark.parametrize(
    ("command", "module"), [("worker", "supervisor"), ("serve", "supervisor"), ("resume", "foreground_run")]
)
def test_a_supervisor_imports_no_crawl_code(tmp_path: Path, command: str, module: str) -> None:
    """`--help` imports the module of the command, which imports the supervisor; only the address guard is of fetch/."""
    code, _, modules = imported(tmp_path, command, "--help")
    assert code == 0
    assert {f"silkline.service.{module}", "silkline.service.job_loop"} <= modules
    assert modules & {"silkline.crawl", "silkline.parse", "silkline.fetch.client", "pycurl", "turbohtml"} == set()


@pytest.mark.parametrize("command", ["worker", "serve"])
def test_a_supervisor_imports_no_spec(tmp_path: Path, command: str) -> None:
    """It starts in half the CPU time without them."""
    code, _, modules = imported(tmp_path, command, "--help")
    assert code == 0
    assert modules & {"silkline.model.spec", "pydantic"} == set()


@pytest.mark.parametrize("process", ["child_process", "reader_process"])
def test_a_fetcher_parser_or_reader_imports_no_spec_and_no_second_http_client(process: str) -> None:
    """A crawl starts many of them: it took twice the CPU time when they did."""
    code = f"import sys, silkline.crawl.{process}; print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    assert "silkline.crawl.plan" in modules
    assert modules & {"silkline.model.spec", "pydantic", "requests", "urllib3"} == set()
