"""What the web page says to people: a meaning for every reason of the engine, and what holds a job up."""

from datetime import UTC, datetime
from typing import get_args

import pytest

from silkline.api.answer_models import WaitReason
from silkline.api.web.words import FILTERS, via
from silkline.crawl import endings, leader, outcomes, pump, reading, scope, traps
from silkline.model import fetched, reasons
from silkline.model.host_wait import REASONS
from silkline.store.waiting import hold_up
from silkline.store.workers import NO_SPACE, Worker

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def reasons_of_the_engine() -> set[str]:
    constants = {
        value
        for name, value in vars(fetched).items()
        # Nobody is told of our own end, and the names of files are no reasons.
        if name.isupper() and isinstance(value, str) and name not in ("CLOSED", "SCREENSHOT", "PDF")
    }
    return constants | {
        *(scope.OUT_OF_SCOPE, scope.EXCLUDED, scope.TOO_DEEP, traps.TRAP, outcomes.REDIRECTED),
        *(reading.NOT_A_PAGE, reading.NOINDEX, reading.PARSE_FAILED, reading.SITEMAP),
        *(pump.ROBOTS, endings.ROBOTS_UNAVAILABLE),
        *(leader.OVER_LIMIT, leader.OVER_DURATION),
    }


@pytest.mark.parametrize("reason", sorted(reasons_of_the_engine()))
def test_every_reason_has_a_meaning(reason: str) -> None:
    assert reasons.on_page(reason)
    assert reasons.at_command_line(reason).startswith(reasons.MEANINGS[reason]), "the same words as on the page"


def test_page_and_command_line_differ_in_their_advice_only() -> None:
    assert FILTERS["meaning"] is reasons.on_page
    for reason, words in reasons.MEANINGS.items():
        for shown, advice in (
            (reasons.on_page(reason), reasons.SETTINGS),
            (reasons.at_command_line(reason), reasons.OPTIONS),
        ):
            assert shown == (f"{words}; {advice[reason]}" if reason in advice else words)
    assert reasons.OPTIONS.keys() | reasons.SETTINGS.keys() <= reasons.MEANINGS.keys()


def test_statuses_have_a_meaning_and_strangers_have_none() -> None:
    assert reasons.on_page("http_404") == "the server answered 404 Not Found"
    assert reasons.on_page("http_599") == "the server answered 599"
    assert reasons.on_page("http_") == reasons.on_page("a plugin's own") == reasons.on_page(None) == ""
    assert reasons.at_command_line("its_own", "so") == "its own (so)"
    assert (via("robots"), via("something new")) == ("robots.txt", "something new")


def test_the_description_names_every_reason_to_wait() -> None:
    assert set(get_args(WaitReason)) == REASONS


def worker(*, held: int = 0, state: str = "running", kinds: tuple[str, ...] | None = ("page",)) -> Worker:
    return Worker("id", "host", 1, "boot", 2, held, True, state, "1", NOW, NOW, kinds)


@pytest.mark.parametrize(
    ("workers", "by"),
    [
        ([], "nobody"),
        ([worker(kinds=())], "nobody"),
        ([worker(kinds=("site",))], "kind"),
        ([worker(kinds=("site",)), worker()], ""),
        ([worker(kinds=("site",)), worker(held=2)], "slot"),
        ([worker(kinds=None)], ""),
        ([worker(held=2)], "slot"),
        ([worker(held=2), worker(held=1)], ""),
        ([worker(state=NO_SPACE)], "disk"),
        ([worker(state=NO_SPACE), worker(held=2)], "slot"),
    ],
)
def test_what_holds_a_job_up(workers: list[Worker], by: str) -> None:
    assert hold_up(workers, "page") == by
