"""What becomes of an answer, as a table and as properties that hold for any answer."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.crawl import decisions
from silkline.crawl.decisions import (
    ANSWERED,
    Action,
    AnswerDecision,
    Follow,
    Forget,
    HostRefused,
    Note,
    PathRefused,
    Read,
    Render,
    Settle,
    Troubles,
    TryAgain,
    Unwell,
    decide,
    is_for_path,
    needs_rendering,
    note_for,
    tell,
)
from silkline.crawl.frontier import HostQueue
from silkline.crawl.plan import PACES, Rendering, Tuning
from silkline.crawl.politeness import Clock
from silkline.crawl.registrable_domain import domain_of
from silkline.crawl.url_queue import FrontierUrl
from silkline.model import fetched as reasons
from silkline.model.fetched import Fetched, Rendered, Timings, is_temporary
from silkline.model.ledger import FOREIGN
from silkline.model.url import host_of

URL = "https://a.example/page"
TARGET = "https://b.example/"
TUNING = Tuning(tries=3, max_redirects=2, retry_base=3.0, longest_wait=60.0, most_waited=100.0, give_up_after=10)
IMPATIENT = msgspec.structs.replace(TUNING, fail_long_waits=True)
AUTO = Rendering(auto=True, count=1, places="")
ALWAYS = Rendering(auto=False, count=1, places="")
HTML = Fetched(URL, 200, body=b"<!doctype html><p>words", content_type="text/html")
PDF = Fetched(URL, 200, body=b"%PDF-1.7", content_type="application/pdf")
SHOWN = msgspec.structs.replace(HTML, rendered=Rendered(URL, b"<p>more words"))
MOVED = Fetched(URL, 301, location=TARGET)
BUSY = Fetched(URL, 503, reason="http_503")
TIRED = Fetched(URL, 429, reason="http_429", headers={"retry-after": "3600"})
BROKEN = Fetched(URL, 500, reason="http_500", detail="")
SILENT = Fetched(URL, reason=reasons.TIMEOUT, detail="no byte for 20 s")
MISSING = Fetched(URL, 404, reason="http_404")
FULL = Fetched(URL, reason=reasons.MEMORY_FULL)
CROWDED = Fetched(URL, reason=reasons.ADDRESS_BUSY)
NO_SLOT = Fetched(URL, reason=reasons.RENDER_BUSY)
OUR_OWN = (reasons.MEMORY_FULL, reasons.ADDRESS_BUSY, reasons.RENDER_BUSY)
CLOSED = Fetched(URL, reason=reasons.CLOSED)


def entry(attempts: int = 0, chain: str = "", via: str = "seed", put_off: int = 0) -> FrontierUrl:
    return FrontierUrl(0, 1, URL, 0, attempts, chain, via, put_off)


@pytest.mark.parametrize(
    ("asked", "fetched", "rendering", "action"),
    [
        pytest.param(entry(), HTML, None, Read(), id="a page"),
        pytest.param(entry(), HTML, AUTO, Read(), id="a page that may need its scripts is read first"),
        pytest.param(entry(), HTML, ALWAYS, Render(), id="a page whose scripts must run"),
        pytest.param(entry(), SHOWN, ALWAYS, Read(), id="a page that was in a browser"),
        pytest.param(entry(), PDF, ALWAYS, Read(), id="a PDF has no scripts"),
        pytest.param(entry(via="robots"), HTML, ALWAYS, Read(), id="nor has a sitemap"),
        pytest.param(entry(), CLOSED, None, Forget(), id="broken off by ourselves"),
        pytest.param(entry(), MOVED, None, Follow(TARGET), id="a redirect"),
        pytest.param(entry(chain="https://c.example/"), MOVED, ALWAYS, Follow(TARGET), id="a second redirect"),
        pytest.param(
            entry(chain="https://c.example/ https://d.example/"),
            MOVED,
            None,
            Settle("failed", reasons.TOO_MANY_REDIRECTS, TARGET),
            id="a third redirect",
        ),
        pytest.param(
            entry(chain=f"https://c.example/ {TARGET}"),
            MOVED,
            None,
            Settle("failed", reasons.REDIRECT_LOOP, TARGET),
            id="a circle",
        ),
        pytest.param(
            entry(),
            Fetched(URL, 301, location=URL),
            None,
            Settle("failed", reasons.REDIRECT_LOOP, URL),
            id="a redirect to itself",
        ),
        pytest.param(
            entry(),
            Fetched(URL, 301, location="mailto:me"),
            None,
            Settle("failed", reasons.BAD_REDIRECT, "mailto:me"),
            id="a redirect to nowhere",
        ),
        pytest.param(entry(), MISSING, None, Settle("failed", "http_404", None), id="missing"),
        pytest.param(entry(), Fetched(URL, 304), None, Settle("failed", reasons.BAD_RESPONSE, None), id="no page"),
        pytest.param(entry(), BROKEN, None, TryAgain("http_500", 1, 3.0), id="a passing failure"),
        pytest.param(entry(1), SILENT, None, TryAgain(reasons.TIMEOUT, 2, 12.0), id="and another"),
        pytest.param(entry(2), SILENT, None, Settle("failed", reasons.TIMEOUT, SILENT.detail), id="and the last"),
        pytest.param(entry(2), FULL, None, TryAgain(reasons.MEMORY_FULL, 2, 48.0, 1), id="our own failure is no try"),
        pytest.param(entry(2), CROWDED, None, TryAgain(reasons.ADDRESS_BUSY, 2, 48.0, 1), id="neither is this"),
        pytest.param(
            entry(2), NO_SLOT, None, TryAgain(reasons.RENDER_BUSY, 2, 48.0, 1), id="nor a browser that is busy"
        ),
        pytest.param(entry(2, put_off=8), NO_SLOT, None, Settle("failed", reasons.RENDER_BUSY, None), id="that long"),
        pytest.param(entry(2, put_off=8), FULL, None, Settle("failed", reasons.MEMORY_FULL, None), id="for ever"),
    ],
)
def test_what_becomes_of_a_url(
    asked: FrontierUrl, fetched: Fetched, rendering: Rendering | None, action: Action
) -> None:
    note = note_for(fetched, 0.0)
    assert decide(asked, fetched, TUNING, rendering=rendering, note=note) == AnswerDecision(action)


LEFT_ALONE = "the server asks to be left alone for 3600 s"


@pytest.mark.parametrize(
    ("fetched", "tuning", "troubles", "action", "give_up"),
    [
        pytest.param(BUSY, TUNING, Troubles(1, 1), TryAgain("http_503", 1, 3.0), "", id="busy once"),
        pytest.param(
            TIRED,
            TUNING,
            Troubles(1, 1, 3600.0, 3600.0),
            Settle("failed", "http_429", LEFT_ALONE),
            "http_429",
            id="too long in all",
        ),
        pytest.param(TIRED, TUNING, Troubles(1, 1, 290.0, 290.0), TryAgain("http_429", 1, 3.0), "", id="a crawl waits"),
        pytest.param(
            TIRED,
            IMPATIENT,
            Troubles(1, 1, 290.0, 290.0),
            Settle("failed", "http_429", LEFT_ALONE),
            "",
            id="who waits for one page does not",
        ),
        pytest.param(
            BUSY,
            TUNING,
            Troubles(2, 2, 101.0, 101.0),
            Settle("failed", "http_503", None),
            "http_503",
            id="again and again",
        ),
        pytest.param(
            BUSY, TUNING, Troubles(10, 10), Settle("failed", "http_503", None), "http_503", id="refused ten times"
        ),
        pytest.param(
            SILENT,
            TUNING,
            Troubles(10),
            Settle("failed", reasons.TIMEOUT, SILENT.detail),
            reasons.TIMEOUT,
            id="silent ten times",
        ),
        pytest.param(SILENT, TUNING, Troubles(9), TryAgain(reasons.TIMEOUT, 1, 3.0), "", id="silent nine times"),
        pytest.param(BROKEN, TUNING, Troubles(50), TryAgain("http_500", 1, 3.0), "", id="errors are answers"),
        pytest.param(MISSING, TUNING, Troubles(50, 50), Settle("failed", "http_404", None), "", id="and so is 404"),
    ],
)
def test_when_a_host_is_given_up(
    fetched: Fetched, tuning: Tuning, troubles: Troubles, action: Action, give_up: str
) -> None:
    note = note_for(fetched, 0.0)
    assert decide(entry(), fetched, tuning, note=note, troubles=troubles) == AnswerDecision(action, give_up)


def test_nothing_of_a_host_that_was_given_up_is_tried_again() -> None:
    decision = decide(entry(), SILENT, TUNING, note=note_for(SILENT, 0.0), given_up=True)
    assert decision == AnswerDecision(Settle("failed", reasons.TIMEOUT, SILENT.detail))


@pytest.mark.parametrize(
    ("fetched", "note"),
    [
        (HTML, ANSWERED),
        (MISSING, ANSWERED),
        (MOVED, ANSWERED),
        (Fetched(URL, reason=reasons.MEMORY_FULL), ANSWERED),
        (BUSY, HostRefused("http_503", None)),
        (TIRED, HostRefused("http_429", 3600.0)),
        (BROKEN, Unwell("http_500")),
        (SILENT, Unwell(reasons.TIMEOUT)),
        (CLOSED, None),
        (CROWDED, None),
    ],
)
def test_what_the_clock_of_a_host_is_told(fetched: Fetched, note: Note | None) -> None:
    assert note_for(fetched, 0.0) == note


@pytest.mark.parametrize(("note", "counted"), [(ANSWERED, (0, 0)), (Unwell("timeout"), (1, 0)), (BUSY, (1, 1))])
def test_the_clock_counts_what_it_is_told(note: Note | Fetched, counted: tuple[int, int]) -> None:
    clock = Clock(PACES["normal"])
    told = note_for(note, 0.0) if isinstance(note, Fetched) else note
    assert told is not None
    tell(clock, told, HTML, 0.0, 1.0, 60.0)
    assert (clock.failures, clock.refusals) == counted


@pytest.mark.parametrize(
    ("fetched", "needs_scripts", "rendering", "answer"),
    [(HTML, True, AUTO, True), (HTML, False, AUTO, False), (HTML, True, None, False), (SHOWN, True, AUTO, False)],
)
def test_a_page_is_rendered_once_at_most(
    fetched: Fetched, needs_scripts: bool, rendering: Rendering | None, answer: bool
) -> None:
    assert needs_rendering(fetched, needs_scripts=needs_scripts, rendering=rendering) is answer


REASONS = sorted(value for name, value in vars(reasons).items() if name.isupper() and isinstance(value, str))
urls = st.sampled_from([URL, TARGET, "https://c.example/", "https://d.example/x"])
answers = st.one_of(
    st.builds(Fetched, url=st.just(URL), status=st.sampled_from([200, 204, 304])),
    st.builds(Fetched, url=st.just(URL), status=st.sampled_from([301, 307]), location=urls | st.text(max_size=20)),
    st.integers(400, 599).map(lambda status: Fetched(URL, status, reason=f"http_{status}")),
    st.builds(
        Fetched,
        url=st.just(URL),
        reason=st.sampled_from(REASONS),
        headers=st.builds(dict, **{"retry-after": st.text(max_size=12) | st.integers(0, 10**6).map(str)}),  # type: ignore[arg-type]
    ),
)
entries = st.builds(entry, st.integers(0, 5), st.lists(urls, max_size=4).map(" ".join))
troubles = st.builds(Troubles, st.integers(0, 20), st.integers(0, 20), st.floats(0, 1e5), st.floats(0, 1e5))
tunings = st.sampled_from([TUNING, IMPATIENT])


def same_domain(url: str, other: str) -> bool:
    return domain_of(host_of(url)) == domain_of(host_of(other))


@given(entries, answers, tunings, troubles, st.booleans())
def test_every_answer_has_one_decision(
    asked: FrontierUrl, fetched: Fetched, tuning: Tuning, counted: Troubles, given_up: bool
) -> None:
    note = note_for(fetched, 1e9)
    action, give_up = decide(asked, fetched, tuning, note=note, troubles=counted, given_up=given_up)
    match action:
        case Read():
            assert fetched.ok
        case Follow(target):
            assert fetched.redirect
            assert target not in (asked.url, *asked.chain.split())
            before = asked.chain.split()
            if same_domain(target, asked.url):
                before = before[-tuning.max_redirects :]
                assert len(before) < tuning.max_redirects or not all(same_domain(url, asked.url) for url in before)
            else:
                assert len(before) < tuning.max_redirects
        case TryAgain(reason, attempts, wait, put_off):
            assert is_temporary(reason)
            assert attempts == asked.attempts + (reason not in OUR_OWN) < tuning.tries
            assert 0 < wait <= tuning.retry_cap
            assert put_off == (reason in OUR_OWN)
            assert not given_up
        case Settle(state, reason, _):
            assert state == "failed"
            assert reason
        case Forget():
            assert fetched.reason == reasons.CLOSED
        case _:
            raise AssertionError(action)
    if give_up:
        assert isinstance(action, Settle), "what a host is given up for is not tried again"
        assert is_temporary(give_up)


@given(answers, troubles)
def test_no_url_is_tried_for_ever(fetched: Fetched, counted: Troubles) -> None:
    asked, tries, note = entry(), 0, note_for(fetched, 1e9)
    while isinstance(action := decide(asked, fetched, TUNING, note=note, troubles=counted).action, TryAgain):
        asked, tries = asked._replace(attempts=action.attempts, put_off=action.put_off), tries + 1
        assert tries < TUNING.tries + 8


def test_deciding_needs_no_clock_and_no_network() -> None:
    assert not {"asyncio", "time", "random"} & vars(decisions).keys()


@pytest.mark.parametrize("failure", [BROKEN, SILENT, TIRED])
def test_the_delay_after_a_failure_counts_from_the_moment_when_the_request_reached_the_host(failure: Fetched) -> None:
    clock = Clock(PACES["normal"])
    for number in range(5):
        clock.answered(number, 0.01)  # so that one error does not make the delay longer
    failure = msgspec.structs.replace(failure, headers={"retry-after": "0"}, timings=Timings(0.4, 0.0, 0.42))
    clock.started(100.0)
    note = note_for(failure, 0.0)
    assert note is not None
    tell(clock, note, failure, 100.0, 100.42, 60.0)
    assert clock.next_at >= 100.42 + 0.5


OTHERS = FrontierUrl(1, 1, URL, 1, via=FOREIGN)
OWN = FrontierUrl(1, 2, TARGET, 1, via="link")


def test_a_request_to_wait_for_a_foreign_url_is_for_the_host_unless_its_own_urls_tell_otherwise() -> None:
    host = HostQueue("a.example", PACES["fast"])
    assert not is_for_path(host, OTHERS, 10), "nothing shows that the host is well"
    host.queue.push(OWN)
    assert is_for_path(host, OTHERS, 10), "its own URL will show it"
    host.queue.pop()
    host.note(OWN, answered=True, refused=False)
    assert is_for_path(host, OTHERS, 10)
    assert not is_for_path(host, OWN, 10)
    host.note(OTHERS, answered=False, refused=False)
    assert is_for_path(host, OTHERS, 10)
    host.note(OWN, answered=False, refused=True)
    assert not is_for_path(host, OTHERS, 10), "the host itself asked us to wait"


def test_after_many_requests_to_wait_in_a_row_they_are_for_the_host() -> None:
    host = HostQueue("a.example", PACES["fast"])
    host.note(OWN, answered=True, refused=False)
    refused, now, delays = PathRefused("http_429", 3600.0), 0.0, []
    while is_for_path(host, OTHERS, 10):
        tell(host.clock, refused, TIRED, now, now, 300.0)
        delays.append(host.clock.delay)
        assert now < host.clock.next_at <= now + 2 * PACES["fast"].most, "the host does not wait for an hour"
        now = host.clock.next_at
    assert len(delays) == 10
    assert delays == sorted(delays), "and it is asked less and less often"
    assert delays[-1] == PACES["fast"].most


@pytest.mark.parametrize(("wait", "action"), [(30.0, TryAgain), (3600.0, Settle)])
def test_a_foreign_url_waits_for_as_long_as_it_is_asked_or_fails(wait: float, action: type[Action]) -> None:
    decision = decide(OTHERS, TIRED, TUNING, note=PathRefused("http_429", wait), troubles=Troubles(99, 99, 1e9, 1e9))
    assert isinstance(decision.action, action)
    assert not decision.give_up
    if isinstance(decision.action, TryAgain):
        assert decision.action.wait == wait
