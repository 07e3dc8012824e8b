"""The options that say how pages are asked for, and the payload they make; shared by `fetch`, `map` and `crawl`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import click

from silkline.cli.own_address import exemptions
from silkline.cli.session import Command, text
from silkline.errors import UsageError
from silkline.model.duration import seconds_of
from silkline.model.spec import Fetching, Speed

TYPED = 20  # a longer list of URLs was not typed; its hosts are not looked up one by one
RENDER = get_args(Fetching.model_fields["render"].annotation)


def seconds(value: str) -> float:
    """The type of a length of time: 90, 30s, 10m, 2h, 1d."""
    try:
        return seconds_of(value)
    except ValueError as error:
        raise click.BadParameter(f"{error}.") from error


def header(value: str) -> tuple[str, str]:
    """The type of a header: `Name: value`."""
    name, colon, rest = value.partition(":")
    if not colon or not name.strip():
        raise click.BadParameter(f"{name[:80]!r} is not a header; write 'Name: value'.")
    return name.strip(), rest.strip()


def cookie(value: str) -> tuple[str, str]:
    """The type of a cookie: `NAME=VALUE`."""
    name, equals, rest = value.partition("=")
    if not equals or not name.strip():
        raise click.BadParameter(f"{name[:80]!r} is not a cookie; write NAME=VALUE.")
    return name.strip(), rest.strip()


_OPTIONS = (
    click.option(
        "--header",
        "headers",
        type=header,
        multiple=True,
        metavar="K:V",
        help="Send this header to the origins that were named, and to no other.",
    ),
    click.option(
        "--cookie",
        "cookies",
        type=cookie,
        multiple=True,
        metavar="NAME=VALUE",
        help="Send this cookie to the origins that were named, and to no other.",
    ),
    click.option("--user-agent", type=text, metavar="UA", help="The whole User-Agent."),
    click.option(
        "--contact",
        type=text,
        metavar="EMAIL",
        help="An address that site owners can write to, sent in the User-Agent.",
    ),
    click.option("--proxy", type=text, metavar="URL", help="Fetch through this proxy."),
    click.option(
        "--allow-private",
        type=text,
        multiple=True,
        metavar="CIDR[:PORT]",
        help="Allow these private addresses. A private address in a URL that you type is allowed without it, except "
        "for metadata services of clouds and link-local addresses.",
    ),
    click.option(
        "--ignore-robots", is_flag=True, help="Fetch what robots.txt does not allow. Only for sites of your own."
    ),
    click.option(
        "--delay", type=seconds, metavar="TIME", help="Least time between two requests to one host: 2, 500ms, 1s."
    ),
    click.option(
        "--speed",
        type=click.Choice(get_args(Speed), case_sensitive=False),
        help="How hard a host may be worked. Default: normal.",
    ),
    click.option(
        "--render",
        type=click.Choice(RENDER, case_sensitive=False),
        help="Let scripts run in a browser: never, auto (if a page needs them) or always. Default: never.",
    ),
)


def asking(command: Command) -> Command:
    """Add the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def payload_of(urls: Sequence[str], options: dict[str, Any], *, here: bool = True) -> dict[str, Any]:
    """The options that were given, as a payload. Each typed URL allows its own address."""
    given = {name: value for name, value in options.items() if value is not None and value is not False and value != ()}
    for name in ("headers", "cookies"):
        if name in given:
            given[name] = dict(given[name])
    look_up = here and len(urls) <= TYPED
    typed = options["allow_private"]
    own = (each for url in urls for each in exemptions(url, look_up_names=look_up, allowed=typed))
    allowed = list(dict.fromkeys((*typed, *own)))
    if allowed:
        given["allow_private"] = allowed
    return {**({"urls": list(dict.fromkeys(urls))} if urls else {}), **given}


def need_urls(urls: Sequence[str]) -> None:
    if not urls:
        raise UsageError("no URL was given: stdin holds none")
