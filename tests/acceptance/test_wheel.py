"""The wheel: built from the tree, installed into a clean environment, and good for what the README promises."""

import ast
import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import silkline
from tests.conftest import ROOT

NOT_INSTALLED = {"crawl4ai"}  # a kind hands pages to it where the operator has installed it
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """What a command says on stdout. It sees neither this environment nor the sources."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SILKLINE_", "PYTHON"))}
    done = subprocess.run(
        command, cwd=cwd, env={**kept, **environment}, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-deps", "--no-build-isolation")
    run(*pip, "--quiet", "--wheel-dir", str(folder), str(ROOT), cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel. Its dependencies are those of this environment; Silkline itself is not."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip())
    # A plain path: the .pth files in it, such as the one that leads to our sources, are not obeyed.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = (
        python,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--no-index",
        "--no-deps",
        "--ignore-installed",
    )
    run(*pip, "--quiet", str(wheel), cwd=folder)
    return folder


def test_the_version_stands_in_one_place(wheel: Path, clean: Path) -> None:
    assert "version" in PROJECT["dynamic"]
    assert wheel.name.startswith(f"silkline-{silkline.__version__}-")
    assert run(clean / "venv" / "bin" / "silkline", "--version", cwd=clean) == f"silkline {silkline.__version__}\n"
    assert json.loads((ROOT / "extension" / "manifest.json").read_text())["version"] == silkline.__version__
    literal = re.compile(r"['\"/ ]" + re.escape(silkline.__version__.rpartition(".")[0]) + r"(\.\d+)?['\"]")
    named = [path for path in (ROOT / "src").rglob("*.py") if literal.search(path.read_text())]
    assert named == [ROOT / "src" / "silkline" / "__init__.py"]


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        text = archive.read(metadata).decode()
        names = set(archive.namelist())
    assert "Project-URL: Homepage, https://github.com/silkline/silkline" in text
    for classifier in PROJECT["classifiers"]:
        assert f"Classifier: {classifier}\n" in text
    # Everything that is not a module is needed as well: SQL, templates, styles, the mark of a typed package.
    source = ROOT / "src"
    data = {
        str(path.relative_to(source))
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert data - names == set()


def test_every_dependency_is_declared(clean: Path) -> None:
    """Each requirement of the wheel is met by what is installed, in a version that it allows."""
    script = """
from importlib.metadata import requires, version
from packaging.requirements import Requirement
wanted = [Requirement(each) for each in requires("silkline")]
wanted = [each for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})]
assert len(wanted) > 10
print([str(each) for each in wanted if version(each.name) not in each.specifier])
"""
    assert run(clean / "venv" / "bin" / "python", "-c", script, cwd=clean) == "[]\n"


def test_every_import_is_of_a_package_that_comes_with_the_wheel() -> None:
    """The packages of this environment are at hand in the one above, so an undeclared one would not be missed there."""
    extras = [each for extra in PROJECT["optional-dependencies"].values() for each in extra]
    declared: set[str] = set()
    collect([*PROJECT["dependencies"], *extras], declared)
    providers = packages_distributions()
    undeclared = {}
    for path in (ROOT / "src").rglob("*.py"):
        for top in imported_by(path) - sys.stdlib_module_names - {"silkline"} - NOT_INSTALLED:
            if not declared & {canonicalize_name(each) for each in providers.get(top, [])}:
                undeclared[str(path.relative_to(ROOT))] = top
    assert undeclared == {}


def collect(requirements: list[str], found: set[str]) -> None:
    """The names of these packages and of all that they bring along."""
    for requirement in map(Requirement, requirements):
        name = canonicalize_name(requirement.name)
        if name not in found and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
            found.add(name)
            collect(requires(name) or [], found)


def imported_by(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").partition(".")[0])
    return found


def test_the_demo_runs_from_the_wheel(clean: Path, tmp_path: Path) -> None:
    program = clean / "venv" / "bin" / "silkline"
    where = run(clean / "venv" / "bin" / "python", "-c", "import silkline; print(silkline.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(clean), "Silkline must come from the wheel"
    home = {"XDG_DATA_HOME": str(tmp_path / "home")}
    shown = run(program, "demo", cwd=tmp_path, **home)
    assert re.search(r"\d+ pages stored", shown)
    assert "Broken links, and the pages that contain them:" in shown
    run(program, "results", "last", "--format", "md", "-o", "site", cwd=tmp_path, **home)
    (puffin,) = (tmp_path / "site").rglob("puffin.md")
    assert "Puffins dig." in puffin.read_text()
    assert (tmp_path / "home" / "silkline" / "silkline.db").exists()
