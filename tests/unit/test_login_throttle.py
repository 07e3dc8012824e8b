"""Wrong tokens are throttled, for each address and in all; nobody is shut out for ever."""

from contextlib import closing
from pathlib import Path

import pytest

from silkline.api.auth import Caller, Doorkeeper
from silkline.api.problems import Problem
from silkline.api.token_making import new_token
from silkline.login_throttle import ADDRESSES, ALL, ALL_EVERY, EACH, EACH_EVERY, LOGINS, LOGINS_EVERY, LoginThrottle
from silkline.store import tokens
from silkline.store.opening import open_database


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def throttle(clock: Clock) -> LoginThrottle:
    return LoginThrottle(clock)


def fail(throttle: LoginThrottle, address: str, times: int) -> None:
    for _ in range(times):
        assert throttle.wait(address, "wrong") == 0
        throttle.was_wrong(address, "wrong")


def refused(throttle: LoginThrottle, address: str, digest: str = "wrong") -> bool:
    return throttle.wait(address, digest) > 0


def test_after_many_wrong_tokens_an_address_has_to_wait(throttle: LoginThrottle, clock: Clock) -> None:
    fail(throttle, "a", EACH)
    assert refused(throttle, "a")
    assert refused(throttle, "a", "right"), "also a right one, or guessing would not be slowed down"
    assert not refused(throttle, "b")
    clock.now += EACH_EVERY
    fail(throttle, "a", 1)
    assert refused(throttle, "a")


def test_what_is_refused_costs_no_further_wait(throttle: LoginThrottle, clock: Clock) -> None:
    fail(throttle, "a", EACH)
    assert all(refused(throttle, "a") for _ in range(1_000))
    clock.now += EACH_EVERY
    assert not refused(throttle, "a")


def test_a_token_that_was_right_passes_during_an_attack(throttle: LoginThrottle, clock: Clock) -> None:
    throttle.was_right("right")
    fail(throttle, "a", EACH)
    assert not refused(throttle, "a", "right")
    throttle.was_wrong("b", "right")
    assert refused(throttle, "a", "right"), "it was taken back"


def test_many_addresses_together_have_to_wait_too(throttle: LoginThrottle, clock: Clock) -> None:
    for number in range(ALL):
        fail(throttle, f"address {number}", 1)
    assert refused(throttle, "address 1")
    assert not refused(throttle, "the operator's"), "who has not failed does not wait for others"
    clock.now += ALL_EVERY
    assert not refused(throttle, "address 1")


def test_memory_is_bounded(throttle: LoginThrottle, clock: Clock) -> None:
    for number in range(ADDRESSES + 50):
        throttle.was_wrong(f"address {number}", "wrong")
        throttle.was_right(f"digest {number}")
    assert len(throttle._each) <= ADDRESSES
    assert len(throttle._good) <= 1_000


def test_a_token_that_we_made_never_waits_for_the_failures_of_others(tmp_path: Path) -> None:
    with closing(open_database(f"sqlite:///{tmp_path / 'silkline.db'}")) as database:
        doorkeeper = Doorkeeper(database, "chosen by the operator", open=False)
        id, token = new_token(database, "mine", "read")
        for _ in range(EACH):
            assert doorkeeper.by_token("a guess", "shared") is None
        with pytest.raises(Problem) as refusal:
            doorkeeper.by_token("a guess", "shared")
        assert (refusal.value.kind, int(refusal.value.headers["Retry-After"]) > 0) == ("too-many-tries", True)
        assert doorkeeper.by_token(token, "shared") == Caller(id, "read"), "its first use, from the same address"
        with pytest.raises(Problem):
            doorkeeper.by_token("chosen by the operator", "shared")  # else guessing it would not be slowed down
        with pytest.raises(Problem):
            doorkeeper.by_token(f"silk_{id}_{'x' * 43}", "shared")
        tokens.forget(database, id)
        with pytest.raises(Problem):
            doorkeeper.by_token(token, "shared")


def test_a_token_that_signs_in_very_often_has_to_wait(throttle: LoginThrottle, clock: Clock) -> None:
    for _ in range(LOGINS):
        assert throttle.take_login("token") == 0
    assert all(throttle.take_login("token") > 0 for _ in range(1_000))
    assert throttle.take_login("another") == 0
    clock.now += LOGINS_EVERY
    assert throttle.take_login("token") == 0


def test_a_login_that_has_to_wait_writes_no_session(tmp_path: Path) -> None:
    with closing(open_database(f"sqlite:///{tmp_path / 'silkline.db'}")) as database:
        doorkeeper = Doorkeeper(database, "an-operator-token", open=False)
        for _ in range(LOGINS):
            doorkeeper.begin_session(Caller("one", "read"))
        with pytest.raises(Problem, match="signed in too often"):
            doorkeeper.begin_session(Caller("one", "read"))
        with database.transaction() as transaction:
            rows = transaction.connection.execute("SELECT count(*) FROM web_sessions").fetchall()  # type: ignore[attr-defined]
        assert rows == [(LOGINS,)]
