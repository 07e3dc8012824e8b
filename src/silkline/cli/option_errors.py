"""Turns what is wrong with a payload into words about the options that were typed."""

from __future__ import annotations

from typing import Any

from silkline.errors import FieldProblem, SpecError, UsageError
from silkline.kinds import registry
from silkline.model.spec import Spec
from silkline.model.user_info import HEADER

# Fields that the command line names otherwise; every other one is its name with two hyphens before it.
OPTIONS = {"headers": "--header", "cookies": "--cookie", "url": "URL", "urls": "URL"}
NO_URL = "name at least one URL"


def option_of(field: str) -> str:
    """The option, or argument, that sets a field of a spec."""
    return OPTIONS.get(field, "--" + field.replace("_", "-"))


def checked(kind: str, payload: dict[str, Any], *, no_url: str = NO_URL) -> Spec:
    """The spec that the options make. What is wrong is said in the words of the command line."""
    try:
        return registry.check_payload(registry.kind_named(kind), payload)
    except SpecError as error:
        if not error.problems:
            raise
        raise UsageError("; ".join(dict.fromkeys(_sentence(each, no_url) for each in error.problems))) from None


def _sentence(problem: FieldProblem, no_url: str) -> str:
    if not problem.field:
        return no_url if problem.message.startswith("a url is needed") else problem.message
    field, _, inner = problem.field.partition(".")
    name = option_of(field)
    if field in ("headers", "cookies"):
        return f"{name} {inner.partition('.')[0]}: {problem.message}" if inner else f"{name}: {problem.message}"
    if field == "proxy":
        return f"{name}: {problem.message}"
    message = problem.message.replace("input should be", "it must be").replace(HEADER, f"--header '{HEADER}'")
    return f"{name} {problem.given!r}: {message}" if problem.given else f"{name}: {message}"
