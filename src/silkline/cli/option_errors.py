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
# The words of the fields in errors about several fields, and those of the options.
_WORDS = {
    "each needs fields": "--each needs --fields or --field",
    "require_fields needs fields": "--require-fields needs --fields or --field",
    "screenshot needs": "--screenshot needs",
    "pdf needs": "--pdf needs",
    "set render to always (auto: only": "add --render always (or --render auto: only",
}
# A message that begins with one of these is a sentence about the value before it.
_VERBS = ("is ", "uses ", "contains ", "has ")


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
        return no_url if problem.message.startswith("a url is needed") else _about_options(problem.message)
    field, _, inner = problem.field.partition(".")
    name = option_of(field)
    if field in ("headers", "cookies"):
        return f"{name} {inner.partition('.')[0]}: {problem.message}" if inner else f"{name}: {problem.message}"
    if field == "proxy":
        return f"{name}: {problem.message}"
    message = problem.message.replace("input should be", "it must be").replace(HEADER, f"--header '{HEADER}'")
    if not problem.given:
        return f"{name}: {message}"
    return f"{name} {problem.given!r}{'' if message.startswith(_VERBS) else ':'} {message}"


def _about_options(message: str) -> str:
    for field, option in _WORDS.items():
        message = message.replace(field, option)
    return message
