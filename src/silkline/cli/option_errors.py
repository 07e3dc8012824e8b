"""Turns errors about the fields of a payload into errors about the options of the command line."""

from __future__ import annotations

from typing import Any

from silkline.errors import FieldProblem, SpecError, UsageError
from silkline.kinds import registry, specs
from silkline.model.spec import Spec
from silkline.model.user_info import HEADER

# Fields whose option has another name. The option of every other field is its name after two hyphens.
OPTIONS = {"headers": "--header", "cookies": "--cookie", "url": "URL", "urls": "URL"}
NO_URL = "give at least one URL"


def option_of(field: str) -> str:
    """The option or argument that sets a field of a spec."""
    return OPTIONS.get(field, "--" + field.replace("_", "-"))


def checked(kind: str, payload: dict[str, Any], *, no_url: str = NO_URL) -> Spec:
    """Make a spec from the payload of the options. Errors name the options."""
    try:
        return specs.check_payload(registry.kind_named(kind), payload)
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
