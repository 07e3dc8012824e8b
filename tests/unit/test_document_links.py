"""Every link from one document of the repository to another leads to a file, and to a heading of it."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/**/*.md")]
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def anchor(heading: str) -> str:
    """The fragment that GitHub makes from a heading."""
    shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip()).lower()
    return re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")


@cache
def anchors(document: Path) -> set[str]:
    return {anchor(heading) for heading in HEADING.findall(document.read_text())}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(document: Path) -> None:
    broken = []
    for link in LINK.findall(document.read_text()):
        if "://" in link:
            continue
        name, _, fragment = link.partition("#")
        target = document.parent / name if name else document
        known = target.exists() and (not fragment or target.suffix != ".md" or fragment in anchors(target))
        if not known:
            broken.append(link)
    assert broken == []


def test_anchors_are_those_of_github() -> None:
    assert anchor("`silkline jobs ls`") == "silkline-jobs-ls"
    assert anchor("Disk, memory, time") == "disk-memory-time"
    assert anchor("[Unreleased](x)") == "unreleased"
