"""What the request gate does with a header before anybody knows who sent it."""

from typing import Any

from silkline.api.request_gate import LONGEST_HOST, AllowedHosts, drop_other_cookies


def test_routes_get_no_cookie_but_our_session() -> None:
    """The framework would parse every cookie for every route, for 6 ms of the event loop if there are 60,000."""
    ours = b"silkline_session=" + b"x" * 43
    for given in (
        ours,
        b"a=b; " + ours,
        ours + b";c=d",
        b";" * 50_000 + ours,
        b"a;\t" + ours + b" ;" + b"b=c;" * 9_000,
    ):
        scope: dict[str, Any] = {"headers": [(b"host", b"x"), (b"cookie", given)]}
        drop_other_cookies(scope)
        assert scope["headers"] == [(b"host", b"x"), (b"cookie", ours)]
    for given in (
        b";" * 60_000,
        b"a=b;" * 15_000,
        ours[:-1],
        ours + b"x",
        b"my" + ours,
        b'silkline_session="' + ours[-43:],
    ):
        scope = {"headers": [(b"cookie", given)]}
        drop_other_cookies(scope)
        assert scope["headers"] == [(b"cookie", b"")]


def test_a_host_name_that_is_too_long_is_not_read() -> None:
    hosts = AllowedHosts("0.0.0.0", 80)
    assert hosts.allow("[::1]:80")
    assert not hosts.allow("[" + "0" * LONGEST_HOST + "::1]:80")
    assert not hosts.allow("1:" * 30_000 + ":80")
