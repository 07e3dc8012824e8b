"""`silkline URL` on a page that no reader survives: a sentence and an exit code, within its limits."""

import os

import pytest

from tests.acceptance.conftest import ROOT, Silkline
from tests.support.poisoned import FOLDER, poisoned_web

LIMITS = {"SILKLINE_READ_SECONDS": "60", "SILKLINE_READ_MEMORY": str(64 << 20)}
SHORT = {**LIMITS, "SILKLINE_READ_SECONDS": "3"}
HURT = {"PYTHONPATH": os.pathsep.join((str(FOLDER), str(ROOT / "src")))}
WAYS = {"loop": "time: it was not read within 3 s", "memory": "memory: it needs more than 64 MiB", "crash": "signal 11"}


@pytest.mark.parametrize("what", WAYS)
def test_a_page_that_cannot_be_read_ends_in_a_sentence(silkline: Silkline, what: str) -> None:
    with poisoned_web({"127.0.0.1": [what]}, hosts=1) as web:
        [bad] = web.bad
        limits = SHORT if what == "loop" else LIMITS
        shown = silkline(bad, "--allow-private", "127.0.0.0/8", **limits, **HURT)
        assert (shown.code, shown.out) == (1, ""), shown
        assert f"{bad}: parsing it took too long, took too much memory, or crashed the parser" in shown.err
        assert WAYS[what] in shown.err
        assert "Traceback" not in shown.err


def test_a_robots_txt_that_cannot_be_read_counts_as_unavailable(silkline: Silkline) -> None:
    with poisoned_web({}, robots={"127.0.0.1": "memory"}, hosts=1) as web:
        shown = silkline(web.seeds[0], "--allow-private", "127.0.0.0/8", **LIMITS, **HURT)
        assert (shown.code, shown.out) == (1, ""), shown
        assert "the robots.txt of its host could not be read" in shown.err


def test_one_page_that_cannot_be_read_does_not_keep_others_from_being_shown(silkline: Silkline) -> None:
    with poisoned_web({"127.0.0.1": ["crash"]}, hosts=1) as web:
        [bad] = web.bad
        shown = silkline("fetch", bad, web.server.url("/good/1"), "--allow-private", "127.0.0.0/8", **LIMITS, **HURT)
        assert shown.code == 0, shown
        assert "signal 11" in shown.err
