"""The options that say how pages are fetched, and the payload made from them; shared by `fetch`, `map`, `crawl`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import click

from silkline.cli.own_address import exemptions
from silkline.cli.session import Command, text
from silkline.errors import UsageError
from silkline.model.duration import seconds_of
from silkline.model.spec import Fetching, Speed

Pair = tuple[str, str]
TYPED = 20  # a longer list of URLs was not typed by a person; its hosts are not looked up in advance
RENDER = get_args(Fetching.model_fields["render"].annotation)


def seconds(value: str) -> float:
    """The type of a duration: 90, 30s, 10m, 2h, 1d."""
    try:
        return seconds_of(value)
    except ValueError as error:
        raise click.BadParameter(f"{error}.") from error


def header(value: str) -> Pair:
    """The type of a header: `Name: value`."""
    name, colon, rest = value.partition(":")
    if not colon or not name.strip():
        raise click.BadParameter(f"{name[:80]!r} is not a header; write 'Name: value'.")
    return name.strip(), rest.strip()


def cookie(value: str) -> Pair:
    """The type of a cookie: `NAME=VALUE`."""
    name, equals, rest = value.partition("=")
    if not equals or not name.strip():
        raise click.BadParameter(f"{name[:80]!r} is not a cookie; write NAME=VALUE.")
    return name.strip(), rest.strip()


def or_file(read: Callable[[str], Pair]) -> Callable[[str], tuple[Pair, ...]]:
    """The type of an option that also takes @FILE, with one value in each line.

    Other users of the machine can read what was typed, but not a private file.
    """

    def values(given: str) -> tuple[Pair, ...]:
        return tuple(_lines(given[1:], read)) if given.startswith("@") else (read(given),)

    return values


def _lines(file: str, read: Callable[[str], Pair]) -> Iterator[Pair]:
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise click.BadParameter(f"{file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise click.BadParameter(f"{file} is not UTF-8.") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield read(line)
            except click.BadParameter:
                # The line may be a secret, so the message does not repeat it.
                raise click.BadParameter(f"Line {number} of {file} is not valid.") from None


_OPTIONS = (
    click.option(
        "--header",
        "headers",
        type=or_file(header),
        multiple=True,
        metavar="K:V",
        help="Send this header, but only to the origins of the given URLs. Other users of the machine can see what you "
        "type: write @FILE for a file with secret headers, one per line.",
    ),
    click.option(
        "--cookie",
        "cookies",
        type=or_file(cookie),
        multiple=True,
        metavar="NAME=VALUE",
        help="Send this cookie, but only to the origins of the given URLs. @FILE is a file with cookies, one per line.",
    ),
    click.option(
        "--headers-for",
        type=text,
        multiple=True,
        metavar="ORIGIN",
        help="Send headers and cookies to this origin, such as https://example.com, instead of the origins of "
        "the given URLs; can be repeated.",
    ),
    click.option("--user-agent", type=text, metavar="UA", help="Send this User-Agent instead of Silkline's."),
    click.option(
        "--contact",
        type=text,
        metavar="EMAIL",
        help="A mail address or URL for site owners, sent in the User-Agent.",
    ),
    click.option("--proxy", type=text, metavar="URL", help="Fetch through this proxy."),
    click.option(
        "--allow-private",
        type=text,
        multiple=True,
        metavar="CIDR[:PORT]",
        help="Allow these private addresses. A private address in a URL that you type needs no permission, "
        "except cloud "
        "metadata services and link-local addresses.",
    ),
    click.option(
        "--ignore-robots", is_flag=True, help="Also fetch what robots.txt forbids. Use it only on your own sites."
    ),
    click.option(
        "--delay", type=seconds, metavar="TIME", help="Minimum time between two requests to one host: 2, 500ms, 1s."
    ),
    click.option(
        "--speed",
        type=click.Choice(get_args(Speed), case_sensitive=False),
        help="How much load one host may get. Default: normal.",
    ),
    click.option(
        "--cpus",
        type=float,
        help="Use at most this many cores, such as 1.5. Default: the setting cpus.",
    ),
    click.option(
        "--render",
        type=click.Choice(RENDER, case_sensitive=False),
        help="Run the scripts of pages in a browser: never, auto (if a page needs them) or always. Default: never.",
    ),
)


def fetch_options(command: Command) -> Command:
    """Add the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def payload_of(urls: Sequence[str], options: dict[str, Any], *, here: bool = True) -> dict[str, Any]:
    """Make a payload from the given options. Each typed URL allows its own address."""
    given = {name: value for name, value in options.items() if value is not None and value is not False and value != ()}
    for name in ("headers", "cookies"):
        if name in given:
            given[name] = dict(chain.from_iterable(given[name]))
    look_up = here and len(urls) <= TYPED
    typed = options["allow_private"]
    own = (each for url in urls for each in exemptions(url, look_up_names=look_up, allowed=typed))
    allowed = list(dict.fromkeys((*typed, *own)))
    if allowed:
        given["allow_private"] = allowed
    return {**({"urls": list(dict.fromkeys(urls))} if urls else {}), **given}


def need_urls(urls: Sequence[str]) -> None:
    if not urls:
        raise UsageError("no URL was given: stdin contains none")
