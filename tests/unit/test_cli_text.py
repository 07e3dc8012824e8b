"""How the command line reads and writes: addresses, times, secrets, control characters, short ids."""

import json
from datetime import UTC, datetime, timedelta

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.api.web.format import visible
from silkline.cli import terminal, views
from silkline.cli.add import read_time
from silkline.cli.group import LazyGroup, is_address
from silkline.cli.own_address import exemptions
from silkline.cli.session import text
from silkline.errors import UsageError
from silkline.model.ledger import Counts
from silkline.model.redaction import redacted, without_password


@pytest.mark.parametrize(
    "address",
    [
        *("https://example.com", "HTTP://EXAMPLE.COM/a?b#c", "example.com", "example.com/about", "example.com."),
        *("www.example.co.uk:8080/x", "localhost", "localhost:8000/x", "127.0.0.1", "127.0.0.1:80/?q", "[::1]:8080/"),
        *("bücher.example", "example.com?q=1", "example.com#top"),
    ],
)
def test_addresses(address: str) -> None:
    assert is_address(address)


@pytest.mark.parametrize("word", ["jobs", "jbos", "", "-", "--help", "doctor", "a b.com c", "ftp://example.com", "x:y"])
def test_what_is_no_address(word: str) -> None:
    assert not is_address(word)


def test_an_address_alone_is_fetched() -> None:
    asked: list[str] = []
    fetch = click.Command("fetch", params=[click.Argument(["url"])], callback=lambda url: asked.append(url))
    group = LazyGroup("root", commands=[fetch])
    for arguments in (["example.com/a"], ["fetch", "example.com/a"]):
        group.main(arguments, standalone_mode=False)
    assert asked == ["example.com/a"] * 2
    with pytest.raises(click.UsageError, match="No such command"):
        group.main(["jbos"], standalone_mode=False)


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("http://127.0.0.1:8000/x", ["127.0.0.1:8000"]),
        ("http://0x7f.1/", ["127.0.0.1:80"]),
        ("https://localhost/", ["127.0.0.1:443", "[::1]:443"]),
        ("http://[::1]:81/", ["[::1]:81"]),
        ("https://93.184.216.34/", []),
        ("https://example.com/", []),
        ("https://localhost.example.com/", []),
        ("nonsense", []),
    ],
)
def test_the_operators_own_address_is_allowed(url: str, allowed: list[str]) -> None:
    assert exemptions(url) == allowed


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://2852039166/",
        "http://0xA9FEA9FE/",
        "http://[::ffff:169.254.169.254]/",
        "http://[64:ff9b::169.254.169.254]/",
        "http://169.254.1.1/",
        "http://[fe80::1]/",
        "http://[fd00:ec2::254]/",
        "http://[fd20:ce::254]/",
        "http://100.100.100.200/",
        "http://168.63.129.16/",
        "http://192.0.0.192/",
        "http://metadata.google.internal/computeMetadata/v1/",
        "http://metadata.google.internal./",
        "http://METADATA/",
    ],
)
def test_a_typed_metadata_address_does_not_allow_itself(url: str) -> None:
    assert exemptions(url, look_up_names=False) == []


def test_a_name_that_leads_to_metadata_does_not_allow_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("silkline.fetch.dns.look_up", lambda host: ("169.254.169.254", "10.0.0.5"))
    assert exemptions("http://intranet.example/", look_up_names=True) == ["10.0.0.5:80"]


def test_times() -> None:
    assert read_time("90s") == timedelta(seconds=90)
    assert read_time("+2h") == timedelta(hours=2)
    assert read_time("1d") == timedelta(days=1)
    assert read_time("1h30m") == timedelta(minutes=90)
    assert read_time("2030-01-31T08:00Z") == datetime(2030, 1, 31, 8, tzinfo=UTC)
    assert read_time("2030-01-31T08:00+02:00") == datetime(2030, 1, 31, 6, tzinfo=UTC)
    for wrong in ("", "2", "-2h", "2x", "9999999d", "2030-13-01", "0001-01-01T00:00+14:00"):
        with pytest.raises(UsageError, match="--run-at"):
            read_time(wrong)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:p@ss:w0rd@db/x", "postgresql://me:***@db/x"),
        ("ws://:hush@r/0", "ws://:***@r/0"),
        ("wss://b/?token=hush&x=1", "wss://b/?token=***&x=1"),
        ("https://s3/?X-Amz-Signature=hush&api_key=hush", "https://s3/?X-Amz-Signature=***&api_key=***"),
        ("https://a/?author=me&keyword=x", "https://a/?author=me&keyword=x"),
        ("no user: me:you@there, twice://a:b@c", "no user: me:you@there, twice://a:***@c"),
    ],
)
def test_passwords_are_hidden(url: str, shown: str) -> None:
    assert without_password(url) == shown


def test_hiding_passwords_takes_linear_time() -> None:
    """Each of these took minutes with an expression that looked again from every letter; the timeout would tell."""
    for piece in ("a", "?", "&", "://", "@", "a=", "://a:"):
        long = piece * (400_000 // len(piece))
        assert len(without_password(long)) > 1_000


def test_secrets_in_a_payload_are_hidden() -> None:
    payload = {
        "headers": {"authorization": "x", "Cookie": "y", "X-Api-Key": "z", "Accept": "text/html"},
        "cookies": {"theme": "dark"},
        "urls": ["http://a:b@c/"],
        "limit": 3,
        "password": "",
    }
    assert redacted(payload) == {
        "headers": {"authorization": "***", "Cookie": "***", "X-Api-Key": "***", "Accept": "text/html"},
        "cookies": {"theme": "***"},
        "urls": ["http://a:***@c/"],
        "limit": 3,
        "password": "",
    }


def obeyed(character: str) -> bool:
    """Would a terminal do something at this character but show it?"""
    code = ord(character)
    return code < 32 or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000 or character in "\u2028\u2029\u202e\u2066\u200b"


@given(st.text(alphabet=st.characters(codec=None), max_size=50))
def test_no_text_reaches_a_terminal_raw(text: str) -> None:
    assert not any(obeyed(character) for character in terminal.safe(text))
    assert not any(obeyed(character) for character in terminal.safe_lines(text).replace("\n", ""))
    for indent in (None, 2):
        printed = terminal.as_json({text: [text]}, indent=indent)
        assert not any(obeyed(character) for character in printed.replace("\n", ""))
        assert json.loads(printed) == {text: [text]}


@pytest.mark.parametrize(
    ("character", "shown"),
    [
        ("\u200b", "\\u200b"),
        ("\u2060", "\\u2060"),
        ("\u00ad", "\\xad"),
        ("\ufeff", "\\ufeff"),
        ("\U000e0041", "\\U000e0041"),
        ("\U000e0100", "\\U000e0100"),
    ],
)
def test_what_nobody_sees_is_shown(character: str, shown: str) -> None:
    assert terminal.safe(f"a{character}b") == f"a{shown}b"
    printed = terminal.as_json([character])
    assert printed.isascii()
    assert json.loads(printed) == [character]
    assert visible(f"a{character}b") == (f"a\\u{ord(character):04x}b" if character != "\u00ad" else "a\u00adb")


@pytest.mark.parametrize(
    "words", ["\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\U0001f469\u200d\U0001f4bb", "\u2764\ufe0f"]
)
def test_joiners_that_scripts_and_emoji_need_are_kept(words: str) -> None:
    assert terminal.safe(words) == words


def test_arguments_are_text_that_a_database_takes() -> None:
    assert text("ü") == "ü"
    with pytest.raises(click.BadParameter, match="UTF-8"):
        text("\udcff")


def test_short_ids_tell_jobs_apart() -> None:
    one, same_moment, later = (
        "01a1e0b1-976f-71d2-88e7-bf248cd1d7f5",
        "01a1e0b1-976f-71d3-88e7-bf248cd1d7f5",
        "01a1e0b1-9770-71d3-88e7-bf248cd1d7f5",
    )
    assert views.short_ids([one, later]) == ["01a1e0b1-976f", "01a1e0b1-9770"]
    assert views.short_ids([one, same_moment, later])[:2] == ["01a1e0b1-976f-71d2", "01a1e0b1-976f-71d3"]
    assert views.short_ids([]) == []


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-5, "0s"), (0, "0s"), (59, "59s"), (60, "1m"), (3599, "59m"), (7200, "2h"), (86_400, "24h"), (172_800, "2d")],
)
def test_durations(seconds: int, shown: str) -> None:
    assert terminal.duration(timedelta(seconds=seconds)) == shown


def test_progress() -> None:
    assert views.progress(Counts()) == "-"
    assert views.progress(Counts(discovered=1500, queued=1400, done=90, failed=10)) == "90/1,500, 10 failed"
