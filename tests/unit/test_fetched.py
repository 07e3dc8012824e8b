"""Reasons, and which of them may pass."""

import pytest

from silkline.model import fetched
from silkline.model.fetched import Fetched, is_temporary, retry_after

REASONS = {value for name, value in vars(fetched).items() if name.isupper() and isinstance(value, str)}
NOON = 784_111_777.0  # Sun, 06 Nov 1994 08:49:37 GMT


def test_every_reason_reads_like_the_others() -> None:
    assert len(REASONS) >= 20
    for reason in REASONS:
        assert reason.replace("_", "").isalpha()
        assert reason.islower()


@pytest.mark.parametrize(
    "reason", ["timeout", "reset", "truncated", "connect_failed", "dns_failed", "http_429", "http_503"]
)
def test_reasons_that_may_pass(reason: str) -> None:
    assert is_temporary(reason)


@pytest.mark.parametrize(
    "reason",
    [None, "http_404", "http_304", "address_blocked", "body_too_large", "tls_failed", "redirect_loop"],
)
def test_reasons_that_stay(reason: str | None) -> None:
    assert not is_temporary(reason)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        (" 0 ", 0.0),
        ("999999999999999999", 86_400.0),
        ("Sun, 06 Nov 1994 08:50:37 GMT", 60.0),
        ("Sun, 06 Nov 1994 08:00:00 GMT", 0.0),
        ("Tue, 06 Nov 2074 08:00:00 GMT", 86_400.0),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("²", None),
        ("Sun, 99 Nov 1994 99:00:00 GMT", None),
    ],
)
def test_retry_after(value: str, seconds: float | None) -> None:
    assert retry_after(Fetched("http://x/", headers={"retry-after": value}), NOON) == seconds


def test_what_an_outcome_is() -> None:
    page = Fetched("http://x/", status=200)
    assert (page.ok, page.unchanged, page.redirect, page.temporary) == (True, False, False, False)
    assert Fetched("http://x/", status=304).unchanged
    assert Fetched("http://x/", status=301, location="http://y/").redirect
    refused = Fetched("http://x/", status=301, location="file:///", reason="scheme_blocked")
    assert (refused.ok, refused.redirect) == (False, False)
    assert not Fetched("http://x/", status=200, reason="truncated").ok
