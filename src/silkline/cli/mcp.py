"""`silkline mcp`: tools for a language model, over stdin and stdout."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import click

from silkline.cli.resources import settings_of
from silkline.cli.session import Session, everywhere, text
from silkline.config import Settings
from silkline.errors import SilklineError, UsageError
from silkline.runner.process import die_with_parent

_HERE = re.compile(r"Silkline is at (http://\S+)")


@click.command()
@click.option("--server", type=text, metavar="URL", help="Use this Silkline server. Default: start a server.")
@click.option(
    "--allow-private",
    multiple=True,
    type=text,
    metavar="CIDR[:PORT]",
    help="Allow the jobs to fetch from these private addresses.",
)
@everywhere()
@click.pass_obj
def mcp(session: Session, server: str | None, allow_private: tuple[str, ...]) -> int:
    """Give a language model tools to fetch and crawl (MCP).

    It uses the Model Context Protocol on stdin and stdout; enter `silkline mcp` as the command in the settings of an
    assistant. Without --server it starts a server on your own database, which ends together with this command. Crawls
    that have not ended then continue the next time.
    """
    settings = settings_of(session)
    try:
        from silkline.api.client import Client
        from silkline.api.mcp import Tools, server_of
        from silkline.api.mcp_stdio import run_on_stdio
        from silkline.fetch.guard import parse_exemption
    except ImportError as error:
        raise UsageError(
            f"silkline mcp needs a package that is not installed ({error}): pip install 'silkline[mcp]'"
        ) from error
    for each in allow_private:
        parse_exemption(each)  # raises an error if it is not a range
    if sys.stdin.isatty():
        session.say("This command is started by an assistant: enter `silkline mcp` in its settings. Ctrl-C ends it.")
    more: dict[str, Any] = {"allow_private": list(allow_private)} if allow_private else {}
    if server is not None:
        Client(server).close()  # raises an error if it is not an address
        run_on_stdio(server_of(Tools(lambda: Client(server, token=settings.api_token), **more)))
        return 0
    token = secrets.token_urlsafe(32)  # other users of this machine must not use this server
    with _own_server(settings, token, allow_private) as url:
        run_on_stdio(server_of(Tools(lambda: Client(url, token=token), **more)))
    return 0


@contextmanager
def _own_server(settings: Settings, token: str, allow_private: tuple[str, ...]) -> Iterator[str]:
    """Run `silkline serve` on a free port, with our settings. It shuts down when this process ends for any reason."""
    us = os.getpid()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "silkline", "serve", "--port", "0", "--settings-from-stdin"],
        stdin=subprocess.PIPE,
        stdout=sys.stderr,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,  # Ctrl-C must reach only this process
        preexec_fn=lambda: die_with_parent(us, signal.SIGTERM),
    )
    try:
        _tell(process, _for_the_server(settings, token, allow_private))
        yield _address(process)
    finally:
        process.terminate()
        process.wait()


def _for_the_server(settings: Settings, token: str, allow_private: tuple[str, ...]) -> Settings:
    """Our own settings, with a token that only this process knows."""
    changed: dict[str, Any] = {"api_token": token}
    if allow_private:
        changed |= {"api_allow_private": True, "api_private_ranges": allow_private}
    return replace(settings, **changed)


def _tell(process: subprocess.Popen[str], settings: Settings) -> None:
    """Send the settings to the server on stdin, where other users cannot see them."""
    assert process.stdin is not None  # noqa: S101
    with contextlib.suppress(BrokenPipeError), process.stdin as stream:  # if it died, `_address` reports it
        stream.write(settings.to_json().decode())


def _address(process: subprocess.Popen[str]) -> str:
    """Read the address from the output of the server, and copy its output to our stderr."""
    lines = process.stderr
    assert lines is not None  # noqa: S101
    for line in lines:
        sys.stderr.write(line)
        if found := _HERE.search(line):
            threading.Thread(target=sys.stderr.writelines, args=(lines,), daemon=True).start()
            return found[1]
    raise SilklineError(f"the server ended with exit code {process.wait()} before it was ready")
