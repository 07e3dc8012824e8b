"""A password in a setting is never printed, whatever characters it has and whatever goes wrong."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from silkline.api import problems
from silkline.cli.exits import run
from silkline.errors import SilklineError
from silkline.model.secret_url import is_ambiguous, masked
from silkline.store.opening import open_database

ODD = (
    "/",
    "#",
    "?",
    " ",
    "%",
    "%zz",
    "%2",
    "@",
    ":",
    "&",
    "=",
    "[",
    "]",
    "\\",
    "'",
    '"',
    "\t",
    ";",
    "://",
    "?token=",
    "é",
)
# Every piece of a password has `hush` in it, so that no piece can be shown unnoticed.
PASSWORDS = st.lists(st.sampled_from((*ODD, "hush1", "hush22", "hush")), min_size=1, max_size=8).map(
    lambda pieces: "hush0" + "".join(pieces) + "hush9"
)
SHAPES = (
    "postgresql://me:{}@127.0.0.1:1/x",
    "postgresql://:{}@127.0.0.1:1/x",
    "postgresql://me@127.0.0.1:1/x?password={}",
    "postgresql://127.0.0.1:1/x?sslmode=disable&password={}",
    "postgresql://me:{}",
    "postgres:me:{}",
    "mysql://me:{}@127.0.0.1/x",
    "host=127.0.0.1 password={}",
)
COMMANDS = (
    ("config",),
    ("config", "--json"),
    ("doctor",),
    ("doctor", "--json"),
    ("jobs", "-v"),
    ("db", "upgrade", "-v"),
    ("worker", "-v"),
    ("serve", "--port", "0", "-v"),
    ("crawl", "http://a.test/", "-v"),
    ("fetch", "http://a.test/", "-v"),
    ("results", "last", "-v"),
)


def names_a_host(shape: str, password: str) -> bool:
    """In an address that ends with the password, what follows an `@` is the host and no secret."""
    return "://" in shape and shape.endswith("me:{}") and "@" in password


@contextlib.contextmanager
def environment(**values: str) -> Iterator[None]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("SILKLINE_", "DATABASE_URL"))}
    with mock.patch.dict(os.environ, {**ours, **values}, clear=True):
        yield


def printed(arguments: tuple[str, ...], variables: Mapping[str, str]) -> str:
    """All that a command says, the log included."""
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    logging.getLogger().addHandler(handler)
    try:
        with environment(**variables), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            run(arguments)
    finally:
        logging.getLogger().removeHandler(handler)
    return said.getvalue()


@given(PASSWORDS, st.sampled_from(SHAPES), st.sampled_from(COMMANDS))
@example("hush0/hush9", SHAPES[0], ("jobs", "-v"))
@example("hush0?hush9", SHAPES[0], ("doctor",))
@example("hush0#hush9", SHAPES[0], ("config",))
@example("hush0 hush9", SHAPES[0], ("worker", "-v"))
@example("hush0%zzhush9", SHAPES[0], ("serve", "--port", "0", "-v"))
@example("hush0@hush9", SHAPES[0], ("db", "upgrade", "-v"))
@example("hush0&hush1=hush9", SHAPES[2], ("jobs", "-v"))
@example("hush0@hush9", SHAPES[2], ("config",))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_command_prints_the_password_of_the_database(
    tmp_path: Path, password: str, shape: str, command: tuple[str, ...]
) -> None:
    assume(not names_a_host(shape, password))
    variables = {"SILKLINE_DATABASE_URL": shape.format(password), "SILKLINE_DATA": str(tmp_path)}
    assert "hush" not in printed(command, variables)


@given(PASSWORDS, st.sampled_from(("ws://:{}@127.0.0.1:1/0", "ws://127.0.0.1:1/0?password={}", "ws://me:{}")))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_command_prints_the_password_of_the_browser(tmp_path: Path, password: str, shape: str) -> None:
    assume(not names_a_host(shape, password))
    variables = {
        "SILKLINE_RENDERER_URL": shape.format(password),
        "SILKLINE_DATA": str(tmp_path),
        "SILKLINE_API_TOKEN": password,
    }
    for command in (("config",), ("doctor", "--json")):
        assert "hush" not in printed(command, variables)


@given(PASSWORDS, st.sampled_from(SHAPES))
@settings(max_examples=100, deadline=None)
def test_neither_an_error_nor_its_traceback_nor_the_api_tells_a_password(password: str, shape: str) -> None:
    assume(not names_a_host(shape, password))
    with pytest.raises(SilklineError) as refused:
        open_database(shape.format(password))
    assert "hush" not in "".join(traceback.format_exception(refused.value))
    assert "hush" not in str(problems.problem_of(refused.value))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:a/b?c#d e@f@db/x", "postgresql://me:***@db/x"),
        ("postgresql://me@db:5432/x?sslmode=require", "postgresql://me@db:5432/x?sslmode=require"),
        ("postgresql:///x?host=/run/postgresql", "postgresql:///x?host=/run/postgresql"),
        ("postgresql://[::1]:5432/x", "postgresql://[::1]:5432/x"),
        ("postgresql://db/x?sslpassword=a&b", "postgresql://db/x?sslpassword=***"),
        ("sqlite:////home/a@b:c/silkline.db", "sqlite:////home/a@b:c/silkline.db"),
        ("ws://token@browser:9222/", "ws://***@browser:9222/"),
        ("", ""),
    ],
)
def test_what_is_no_secret_is_shown(url: str, shown: str) -> None:
    assert masked(url) == shown


@pytest.mark.parametrize(
    ("url", "ambiguous"),
    [
        ("postgresql://me:a%2Fb@db/x", False),
        ("postgresql://me@db/x?options=a@b", False),
        ("postgresql://db:5432/x?options=a@b", False),
        ("postgresql:///x?user=a@b", False),
        ("postgresql://me:a/b@db/x", True),
        ("postgresql://me:a@b@db/x", True),
        ("postgresql://me:a%b@db/x", True),
        ("postgresql://me:a%zz@db/x", True),
    ],
)
def test_a_password_that_should_have_been_encoded_is_noticed(url: str, ambiguous: bool) -> None:
    assert is_ambiguous(url) is ambiguous
