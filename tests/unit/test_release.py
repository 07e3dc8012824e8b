"""The version and CHANGELOG.md move together; the rule is the one by which `make dist` refuses to build."""

import json
import re

import pytest

import silkline
from tests.support.release import CHANGELOG, ROOT, wrong_version

CHANGES = "# Changelog\n\n## [Unreleased]\n{}\n## [0.2.0] - 2026-12-01\n\n- b\n\n## [0.1.0] - 2026-11-16\n\n- a\n"


def test_the_version_fits_to_the_changelog() -> None:
    assert wrong_version(CHANGELOG.read_text(), silkline.__version__) == ""


@pytest.mark.parametrize(("entries", "version"), [("", "0.2.0"), ("\n- c\n", "0.2.1"), ("\n- c\n", "0.10.0")])
def test_a_version_that_fits(entries: str, version: str) -> None:
    assert wrong_version(CHANGES.format(entries), version) == ""


@pytest.mark.parametrize(
    ("changelog", "version", "why"),
    [
        (CHANGES.format("\n- c\n"), "0.2.0", "has changes after the release 0.2.0"),
        (CHANGES.format(""), "0.3.0", "the version is 0.3.0, but the newest release"),
        (CHANGES.format("").replace("0.2.0", "0.0.9"), "0.1.0", "not in their order"),
        (CHANGES.format("").replace(" - 2026-12-01", ""), "0.2.0", "has no date"),
        ("# Changelog\n\n## [0.1.0] - 2026-11-16\n", "0.1.0", "must begin with the heading"),
        ("# Changelog\n\n## [Unreleased]\n", "0.1.0", "has no entry"),
    ],
)
def test_a_version_that_does_not_fit(changelog: str, version: str, why: str) -> None:
    assert why in wrong_version(changelog, version)


def test_every_place_has_the_same_version() -> None:
    assert json.loads((ROOT / "extension" / "manifest.json").read_text())["version"] == silkline.__version__
    assert set(re.findall(r"^ARG VERSION=(.+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)) == {
        silkline.__version__
    }


def test_the_readme_begins_with_the_installed_command() -> None:
    """Who wants to use Silkline needs no checkout."""
    first = re.search(r"^```\n(.+?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert first is not None
    assert first[1].startswith("pipx install silkline")
