"""The options that say what is kept of each page, and the note if little was kept."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import click

from silkline.cli.session import text

Command = TypeVar("Command", bound=Callable[..., Any])
HALF: Final = 0.5
MODES: Final = ["main", "markdown", "full", "text", "html", "none"]


def content_options(command: Command) -> Command:
    """Add --content and the options that change the content."""
    for option in reversed(
        (
            click.option(
                "--content",
                type=click.Choice(MODES, case_sensitive=False),
                help="What to keep of each page: the main content as Markdown (main, or markdown), the full page as "
                "Markdown, plain text, HTML, or none. Default: main.",
            ),
            click.option(
                "--keep",
                metavar="CSS",
                multiple=True,
                type=text,
                help="Keep only what this selector finds; can be repeated.",
            ),
            click.option(
                "--drop",
                metavar="CSS",
                multiple=True,
                type=text,
                help="Remove what this selector finds; can be repeated.",
            ),
            click.option("--no-links", is_flag=True, help="Keep only the words of links."),
            click.option("--no-images", is_flag=True, help="Leave images out."),
            click.option("--link-titles", is_flag=True, help="Keep the titles of links and images."),
        )
    ):
        command = option(command)
    return command


def little_kept(data: Mapping[str, Any]) -> str:
    """A note if less than half of the visible text was kept and the user did not choose the rest away; else empty."""
    share, words = data.get("kept"), data.get("words")
    if not isinstance(share, int | float) or not 0 <= share < HALF or data.get("rule") == "keep":
        return ""
    return f"kept {words} words, {share:.0%} of the visible text; --content full keeps all, --keep CSS chooses"
