"""The command `silkline` and its table of commands. The module of a command is imported only when the command runs."""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import click

from silkline import __version__
from silkline.cli.session import everywhere

# Names that other programs use for some of our commands.
OTHER_NAMES = {
    **dict.fromkeys(("ls", "list", "status", "ps"), "jobs ls"),
    **dict.fromkeys(("rm", "delete", "remove", "del"), "jobs rm"),
    **{verb: f"jobs {verb}" for verb in ("pause", "stop", "cancel", "retry", "show", "add")},
    **{"help": "--help", "version": "--version", "get": "fetch", "export": "results", "start": "serve"},
}


class Lazy(NamedTuple):
    """A command that is not imported yet: its module, and its line in the help of its group."""

    target: str
    help: str


# The title of each part of the list of commands in the help of `silkline`, by the first command of the part.
SECTIONS = {
    "fetch": "Fetch and crawl",
    "results": "Look at a job",
    "jobs": "All jobs",
    "serve": "Run the service",
    "demo": "Try and check this installation",
}


class LazyGroup(click.Group):
    """A group that imports its commands when they run. `default` is the command that runs when none is given.

    `sections` has a title for the first command of each part of the help.
    """

    def __init__(
        self,
        *args: Any,
        lazy: Mapping[str, Lazy] | None = None,
        default: str = "",
        sections: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = dict(lazy or {})
        self.default = default
        self.sections = sections or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.commands, *self.lazy]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.lazy:
            module, _, attribute = self.lazy[cmd_name].target.partition(":")
            command: click.Command = getattr(importlib.import_module(module), attribute)
            return command
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, command.get_short_help_str(limit=200)) for name, command in self.commands.items()]
        rows += [(name, lazy.help) for name, lazy in self.lazy.items()]
        parts: dict[str, list[tuple[str, str]]] = {}
        title = "Commands"
        for name, help in rows:
            title = self.sections.get(name, title)
            parts.setdefault(title, []).append((name, help))
        for title, part in parts.items():
            with formatter.section(title):
                formatter.write_dl(part)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = args[0] if args else "-"
        if self.default and first.startswith("-") and first not in ctx.help_option_names:
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args[0] not in known:
            if "fetch" in known and is_address(args[0]):
                args = ["fetch", *args]
            else:
                ctx.fail(self._no_such_command(ctx, args[0]))
        return super().resolve_command(ctx, args)

    def _no_such_command(self, ctx: click.Context, name: str) -> str:
        """The error for an unknown command, with a suggestion: another command, or a URL with another scheme."""
        from silkline.cli.typed_url import wrong_scheme

        wrong = wrong_scheme(name) if "fetch" in self.lazy and re.search(r"[:/]", name) else ""
        if wrong:
            return wrong
        known = self.list_commands(ctx)
        other = OTHER_NAMES.get(name.lower(), "")
        meant = other.split()[-1] if other and other.split()[-1] in known else other if "jobs" in known else ""
        close = [meant] if meant else difflib.get_close_matches(name.lower(), known, n=2, cutoff=0.55)
        hint = f" Did you mean {' or '.join(f'`{ctx.command_path} {each}`' for each in close)}?" if close else ""
        return f"No such command {name[:80]!r}.{hint}"


def is_address(text: str) -> bool:
    """Whether the first argument looks like a URL or a host, such as `example.com/about` or `localhost:8000`."""
    if re.match(r"https?://", text, re.IGNORECASE):
        return True
    host = re.match(r"(?:[\w-]+\.)+[\w-]+\.?|localhost|\[[0-9a-f:.]+\]", text, re.IGNORECASE)
    return bool(host) and re.fullmatch(r"(:\d+)?([/?#].*)?", text[host.end() :] if host else "") is not None


@click.group(
    cls=LazyGroup,
    lazy={
        "fetch": Lazy("silkline.cli.fetch:fetch", "Fetch pages and print them as Markdown."),
        "crawl": Lazy("silkline.cli.crawl:crawl", "Crawl one site or many in the foreground, with a progress line."),
        "resume": Lazy(
            "silkline.cli.crawl:resume", "Run a paused or queued job in the foreground, from its checkpoint."
        ),
        "map": Lazy("silkline.cli.map:map_site", "List the URLs of a site, from its sitemaps."),
        "fields": Lazy("silkline.cli.fields:fields", "Try fields on one page, or propose fields for it."),
        "extract": Lazy(
            "silkline.cli.extract:extract", "Read the stored pages of a job again, for other fields or other content."
        ),
        "results": Lazy("silkline.cli.results:results", "Write the results of a job."),
        "urls": Lazy("silkline.cli.urls:urls", "List the URLs of a job, each with its state and reason."),
        "errors": Lazy("silkline.cli.urls:errors", "Show what failed, by reason, with the pages that link to it."),
        "explain": Lazy("silkline.cli.explain:explain", "Show what happened to one URL of a crawl."),
        "logs": Lazy("silkline.cli.logs:logs", "Show the log of a job."),
        "jobs": Lazy("silkline.cli.jobs:jobs", "List, add, show, pause, resume, stop, cancel, retry or remove jobs."),
        "workers": Lazy("silkline.cli.workers:workers", "Show which workers are alive."),
        "top": Lazy("silkline.cli.top:top", "Show machines, queue and running jobs, live."),
        "serve": Lazy("silkline.cli.serve:serve", "Run Silkline on this machine: API, web page and a worker."),
        "worker": Lazy("silkline.cli.worker:worker", "Run a worker: it claims jobs and runs them."),
        "mcp": Lazy("silkline.cli.mcp:mcp", "Give a language model tools to fetch and crawl (MCP)."),
        "tokens": Lazy("silkline.cli.tokens:tokens", "Add, list and remove tokens for the API."),
        "demo": Lazy("silkline.cli.demo:demo", "Crawl a small sample site on this machine and show the results."),
        "config": Lazy("silkline.cli.config:config", "Show each setting, its value and the source of the value."),
        "doctor": Lazy("silkline.cli.doctor:doctor", "Check this machine and the database; say what to do."),
        "db": Lazy("silkline.cli.db:db", "Maintain the database."),
    },
    sections=SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    subcommand_metavar="URL | COMMAND [ARGS]...",
    epilog="Exit codes: 0 success, 1 failed or refused, 2 usage, 3 paused or queued, 4 stopped or cancelled, 5 "
    "not found.",
)
@everywhere(shown=True)
@click.version_option(__version__, message="silkline %(version)s", help="Show the version and exit.")
def silkline() -> None:
    """Web crawls that never lose their thread.

    \b
    silkline https://example.com/                     one page as Markdown
    silkline crawl https://example.com/ --limit 500   a site; Ctrl-C pauses it
    silkline resume last                              resume the paused job
    silkline results last --format md -o pages/       its results: jsonl, csv, parquet, …
    silkline errors last                              what failed, and the pages that link to it
    silkline serve                                    web page and API on this machine
    """
