"""`make dist`: builds sdist and wheel twice from different folders, compares them, and tries the wheel.

What goes into the archives is what git knows, or every file where there is no git. Two builds in different folders must
give the same bytes, and the wheel from the sdist must be the wheel from the tree.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import silkline

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
CHANGELOG = ROOT / "CHANGELOG.md"
HEADING = re.compile(r"^## \[(.+?)\](?: - (\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)


def main(tools: Path) -> int:
    if why_not := wrong_version(CHANGELOG.read_text(), silkline.__version__):
        print(f"make dist: {why_not}", file=sys.stderr)
        return 1
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        built = [built_from(sources(place / name), place / f"out-{name}") for name in ("one", "another-longer-name")]
        if digests(built[0]) != digests(built[1]):
            print(f"make dist: two builds differ: {digests(built[0])} {digests(built[1])}", file=sys.stderr)
            return 1
        (archive,) = built[0].glob("*.tar.gz")
        again = built_from(unpacked(archive, place / "sdist"), place / "out-sdist", "wheel")
        if digests(again).items() - digests(built[0]).items():
            print("make dist: the wheel of the sdist differs from the wheel of the tree", file=sys.stderr)
            return 1
        shutil.copytree(built[0], DIST)
    files = sorted(DIST.iterdir())
    run(tools / "bin" / "python", "-m", "twine", "check", "--strict", *files)
    for path in files:
        print(f"{digests(DIST)[path.name]}  {path.relative_to(ROOT)}  {path.stat().st_size:,} bytes")
    try_wheel(next(path for path in files if path.suffix == ".whl"))
    return 0


def wrong_version(changelog: str, version: str) -> str:
    """Why the version does not fit to the changelog; empty: it does.

    A release moves the entries of Unreleased below a heading with its version. The first entry after that needs a
    higher version in the code.
    """
    headings = [(found[1], found.start(), found.end(), found[2]) for found in HEADING.finditer(changelog)]
    if not headings or headings[0][0] != "Unreleased":
        return "CHANGELOG.md must begin with the heading [Unreleased]"
    released = [name for name, *_ in headings[1:]]
    if undated := [name for name, _, _, date in headings[1:] if not date]:
        return f"the release {undated[0]} has no date in CHANGELOG.md"
    if released != sorted(released, key=numbers, reverse=True):
        return "the releases in CHANGELOG.md are not in their order, newest first"
    end = headings[1][1] if released else len(changelog)
    changed = bool(changelog[headings[0][2] : end].strip())
    if not released:
        return "" if changed else "CHANGELOG.md has no entry"
    if changed and numbers(version) <= numbers(released[0]):
        return f"CHANGELOG.md has changes after the release {released[0]}, but the version is still {version}"
    if not changed and version != released[0]:
        return f"the version is {version}, but the newest release in CHANGELOG.md is {released[0]}"
    return ""


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def sources(folder: Path) -> Path:
    """A copy of the tree."""
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", "--cached"], capture_output=True, text=True, check=False
    )
    if listed.returncode:
        left_out = shutil.ignore_patterns(".venv", "build", "dist", "__pycache__", ".*_cache", ".hypothesis", ".git")
        return Path(shutil.copytree(ROOT, folder, ignore=left_out))
    for name in filter(None, listed.stdout.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copy2(ROOT / name, folder / name)
    return folder


def built_from(folder: Path, into: Path, *targets: str) -> Path:
    """The folder with the archives that hatchling made of these sources."""
    epoch = (
        os.environ.get("SOURCE_DATE_EPOCH")
        or subprocess.run(
            ["git", "-C", ROOT, "log", "-1", "--format=%ct"], capture_output=True, text=True, check=False
        ).stdout.strip()
    )
    environment = {**os.environ, **({"SOURCE_DATE_EPOCH": epoch} if epoch else {})}
    for target in targets or ("sdist", "wheel"):
        command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(into)]
        subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
    return into


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def unpacked(archive: Path, folder: Path) -> Path:
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    (inside,) = folder.iterdir()
    return inside


def try_wheel(wheel: Path) -> None:
    """Install the wheel with its pinned dependencies into a clean environment, and run the demo there."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        run(sys.executable, "-m", "venv", place / "venv")
        pip = (place / "venv" / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
        run(*pip, "--only-binary", ":all:", "--require-hashes", "--requirement", ROOT / "requirements" / "base.txt")
        run(*pip, "--no-deps", wheel)
        run(*pip[:-2], "check")
        environment = {"PATH": "/usr/bin:/bin", "HOME": folder, "LANG": "C.UTF-8"}
        for arguments in (("--version",), ("demo",)):
            program = place / "venv" / "bin" / "silkline"
            done = subprocess.run(
                [program, *arguments], env=environment, cwd=folder, text=True, capture_output=True, check=True
            )
            print("clean environment:", done.stdout.splitlines()[0])


def run(*command: str | Path) -> None:
    subprocess.run(command, check=True)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
