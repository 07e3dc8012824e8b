"""The options that say how pages are asked for, and the payload they make; shared by `fetch` and `map`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, get_args

import click

from silkline.cli.own_address import exemptions
from silkline.cli.session import Command, text
from silkline.errors import UsageError
from silkline.model.spec import Speed

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
TYPED = 20  # a longer list of URLs was not typed; its hosts are not looked up one by one


def seconds(value: str) -> float:
    """The type of a length of time: 90, 30s, 10m, 2h, 1d."""
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)([smhd]?)", value)
    if not found:
        raise click.BadParameter(f"{value!r} is not a length of time; write 90, 30s, 10m, 2h or 1d.")
    return float(found[1]) * _UNITS[found[2]]


def header(value: str) -> tuple[str, str]:
    """The type of a header: `Name: value`."""
    name, colon, rest = value.partition(":")
    if not colon or not name.strip():
        raise click.BadParameter(f"{value!r} is not a header; write 'Name: value'.")
    return name.strip(), rest.strip()


_OPTIONS = (
    click.option("--header", "headers", type=header, multiple=True, metavar="K:V", help="Send this header as well."),
    click.option("--user-agent", type=text, metavar="UA", help="Go by this name."),
    click.option(
        "--contact", type=text, metavar="EMAIL", help="Whom site owners can write to; sent in the User-Agent."
    ),
    click.option("--proxy", type=text, metavar="URL", help="Ask through this proxy."),
    click.option(
        "--allow-private", type=text, multiple=True, metavar="CIDR[:PORT]", help="Let it reach these addresses."
    ),
    click.option("--ignore-robots", is_flag=True, help="Ask for pages that robots.txt does not allow."),
    click.option("--delay", type=seconds, metavar="TIME", help="Least time between two requests to one host."),
    click.option("--speed", type=click.Choice(get_args(Speed)), help="How hard a host may be worked. Default: normal."),
)


def asking(command: Command) -> Command:
    """Add the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def payload_of(urls: Sequence[str], options: dict[str, Any]) -> dict[str, Any]:
    """The options that were given, as a spec. Each typed URL allows its own address."""
    if not urls:
        raise UsageError("no URL was given")
    given = {name: value for name, value in options.items() if value not in (None, False, ())}
    if "headers" in given:
        given["headers"] = dict(given["headers"])
    own = (each for url in urls for each in exemptions(url, look_up_names=len(urls) <= TYPED))
    allowed = list(dict.fromkeys((*options["allow_private"], *own)))
    if allowed:
        given["allow_private"] = allowed
    return {"urls": list(dict.fromkeys(urls)), **given}
