"""Nothing is skipped silently: under CI=true a skip is a failure."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ONE_SKIPS = """
import pytest

def test_runs(): pass

@pytest.mark.skip(reason="not today")
def test_is_skipped(): pass
"""
MODULE_SKIPS = "import pytest; pytest.skip('nothing here', allow_module_level=True)"
PLAIN = ("-p", "tests.conftest", "-c", os.devnull)
SIDE_BY_SIDE = ("-p", "xdist", "--numprocesses", "2")
NONE_SKIPS = "def test_runs(): pass"
ON_EACH = """
import pytest

@pytest.mark.parametrize("database", ["sqlite", "postgres"])
@pytest.mark.parametrize("number", range(8))
def test_runs(database, number): pass

@pytest.mark.both_databases
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_always(database): pass

@pytest.mark.parametrize("database", ["postgres"])
def test_alone(database): pass
"""


def run(folder: Path, source: str, ci: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_sample.py").write_text(source)
    return subprocess.run(
        [sys.executable, "-m", "pytest", *PLAIN, "--rootdir", folder, *options, folder],
        cwd=ROOT,
        env=os.environ | {"CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("source", "options"),
    [(ONE_SKIPS, ()), (MODULE_SKIPS + "\n" + NONE_SKIPS, SIDE_BY_SIDE)],
    ids=["a test, one process", "a module, two processes"],
)
def test_a_skip_fails_the_run_in_ci_and_is_named(tmp_path: Path, source: str, options: tuple[str, ...]) -> None:
    done = run(tmp_path, source, "true", *options)
    assert done.returncode != 0
    assert "skipped tests fail this run" in done.stdout
    assert "test_sample.py" in done.stdout.split("skipped tests fail this run")[1]


@pytest.mark.parametrize("options", [(), SIDE_BY_SIDE], ids=["one process", "two processes"])
def test_a_skip_is_allowed_elsewhere_and_the_last_line_names_it(tmp_path: Path, options: tuple[str, ...]) -> None:
    done = run(tmp_path, ONE_SKIPS, "", *options)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "1 left out: test_sample.py::test_is_skipped (not today)"


def test_a_run_without_skips_passes_in_ci(tmp_path: Path) -> None:
    assert run(tmp_path, NONE_SKIPS, ci="true").returncode == 0


@pytest.mark.parametrize(
    ("folder", "options", "passed"),
    [("api", (), 8 + 2 + 1), ("api", ("--both-databases",), 16 + 2 + 1), ("store", (), 16 + 2 + 1)],
)
def test_a_test_whose_subject_is_no_database_runs_on_one(
    tmp_path: Path, folder: str, options: tuple[str, ...], passed: int
) -> None:
    (tmp_path / folder).mkdir()
    done = run(tmp_path / folder, ON_EACH, "true", *options, "--verbose")
    assert f"{passed} passed" in done.stdout
    for number in range(8):  # none is left out on both
        assert f"test_runs[{number}-sqlite]" in done.stdout or f"test_runs[{number}-postgres]" in done.stdout
