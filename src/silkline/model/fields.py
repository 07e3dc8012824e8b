"""The fields that a user names for a job: where each value is in a page, and its type. Values only; no parser.

A field has one source: a CSS selector, an XPath, or a path into the JSON-LD, the microdata, the OpenGraph tags or the
meta tags of a page. `read_fields` checks what a user wrote, and names the place of every error. Selectors are compiled
to check them; `model.selector_check` does that.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from silkline.model.pattern import MAX_LENGTH_TOGETHER, BadPattern, UrlPattern
from silkline.model.selector_check import BadSelector, check_css, check_regex, check_xpath

Source = Literal["css", "xpath", "json_ld", "microdata", "opengraph", "meta"]
FieldType = Literal["text", "number", "price", "date", "url", "boolean"]
SOURCES: Final[tuple[str, ...]] = get_args(Source)
TYPES: Final[tuple[str, ...]] = get_args(FieldType)
OPTIONS: Final = ("attribute", "regex", "many", "type", "required", "default", "when")
MOST_FIELDS: Final = 100
LARGEST: Final = 100_000
"""Characters of all fields together."""
LONGEST: Final = 1_000
"""Characters of a selector, path or pattern."""
MOST_PROBLEMS: Final = 20
"""In one error message."""
CURRENCY: Final = "_currency"
"""A field of the type price has a second value, the currency, under its name with this ending."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_PSEUDO: Final = re.compile(r"\s*::(text|attr\(\s*([\w:.-]+)\s*\))\s*$")
_PREFIXES: Final[dict[str, Source]] = {
    "css:": "css",
    "xpath:": "xpath",
    "json-ld:": "json_ld",
    "json_ld:": "json_ld",
    "microdata:": "microdata",
    "opengraph:": "opengraph",
    "meta:": "meta",
}
_XPATH_STARTS: Final = ("/", "./", "../", "(/", "(./")
_DEFAULTS: Final[dict[str, tuple[type, ...]]] = {"number": (int, float), "price": (int, float), "boolean": (bool,)}


@dataclass(frozen=True, slots=True)
class Field:
    """One field. `path` is the selector or path, `when` a pattern for the URLs of pages that have the field."""

    name: str
    source: Source
    path: str
    attribute: str = ""
    regex: str = ""
    many: bool = False
    type: FieldType = "text"
    required: bool = False
    default: Any = None
    when: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its values in a result."""
        return (self.name, self.name + CURRENCY) if self.type == "price" else (self.name,)


_PLAIN: Final[dict[str, Any]] = {name: Field.__dataclass_fields__[name].default for name in OPTIONS}


class BadFields(ValueError):
    """Fields that cannot be used. `problems` has the place of each error (`price.css`) and what is wrong."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{place}: {words}" if place else words for place, words in problems))
        self.problems = problems


def read_fields(given: Any, each: str | None = None) -> tuple[Field, ...]:
    """The fields that a user wrote, as a mapping from each name to a text or a mapping. Raises `BadFields`."""
    problems: list[tuple[str, str]] = []
    found: list[Field] = []
    if each is not None:
        problems += [("each", words) for words in _wrong_selector("css", each)]
    if not isinstance(given, Mapping):
        raise BadFields([*problems, ("", "must be a table: a name and a selector for each field")])
    if len(given) > MOST_FIELDS:
        raise BadFields([("", f"are more than {MOST_FIELDS} fields")])
    if _is_larger(given, LARGEST) or len(str(given)) > LARGEST:
        raise BadFields([("", f"are larger than {LARGEST:,} characters together")])
    if sum(map(_length_of_patterns, given.values())) > MAX_LENGTH_TOGETHER:
        words = f"have patterns with more than {MAX_LENGTH_TOGETHER:,} characters together: use fewer or shorter ones"
        raise BadFields([("", words)])
    if each is not None and not given:
        problems.append(("each", "needs at least one field"))
    for name, value in given.items():
        if len(problems) >= MOST_PROBLEMS:
            break
        before = len(problems)
        fields = _field(str(name), value, problems)
        if fields is not None and len(problems) == before:
            found.append(fields)
    problems += _same_columns(found)
    if problems:
        raise BadFields(problems[:MOST_PROBLEMS])
    return tuple(found)


def as_table(fields: tuple[Field, ...]) -> dict[str, dict[str, Any]]:
    """The fields as plain JSON, in the form that `read_fields` reads."""
    table = {}
    for field in fields:
        row: dict[str, Any] = {field.source: field.path}
        row |= {name: getattr(field, name) for name in OPTIONS if getattr(field, name) != _PLAIN[name]}
        table[field.name] = row
    return table


def inline_field(text: str) -> tuple[str, Any]:
    """Name and value of `NAME=SELECTOR`, or `NAME:TYPE=SELECTOR`, from a command line. Raises `BadFields`."""
    head, equals, selector = text.partition("=")
    name, colon, kind = head.strip().partition(":")
    if not equals or not name:
        raise BadFields([("", f"{text[:80]!r} is not a field: write NAME=SELECTOR or NAME:TYPE=SELECTOR")])
    value = _short_form(selector.strip())
    return name, {**value, "type": kind} if colon else value


def _field(name: str, value: Any, problems: list[tuple[str, str]]) -> Field | None:
    if not _NAME.fullmatch(name):
        problems.append((name[:80], "is not a name: use letters, digits and _, not more than 63, no digit first"))
        name = name[:80]
    if isinstance(value, str):
        value = _short_form(value)
    if not isinstance(value, Mapping):
        problems.append((name, "must be a selector, or a table with css, xpath or another source"))
        return None
    known = (*SOURCES, *OPTIONS)
    unknown = [key for key in value if key not in known]
    if len(unknown) > len(known):
        problems.append((name, f"has {len(unknown):,} unknown keys (known: {', '.join(known)})"))
        return None
    for key in unknown:
        if len(problems) >= MOST_PROBLEMS:  # each suggestion costs 60 µs
            return None
        close = difflib.get_close_matches(str(key)[:40], known, n=1)
        hint = f": did you mean {close[0]!r}?" if close else f" (known: {', '.join(known)})"
        problems.append((f"{name}.{str(key)[:40]}", f"unknown key{hint}"))
    sources = [key for key in SOURCES if key in value]
    if len(sources) != 1:
        what = " and ".join(sources) if sources else "none"
        problems.append((name, f"needs exactly one of {', '.join(SOURCES)} (has {what})"))
        return None
    problems += [(f"{name}.{key}", words) for key, words in _wrong_values(value, sources[0])]
    if any(place.startswith(f"{name}.") for place, _ in problems):
        return None
    source: Any = sources[0]
    path, attribute = value[source].strip(), value.get("attribute", "")
    if source == "css":
        path, pseudo = _without_pseudo(path)
        attribute = attribute or pseudo
    rest = {key: value[key] for key in OPTIONS if key in value and key != "attribute" and value[key] is not None}
    return Field(name, source, path, attribute, **rest)


def _is_larger(value: Any, most: int) -> bool:
    """Whether a value is certainly longer as text. Takes little time and no memory, however large the value is."""
    left, size = [value], 0
    while left and size <= most:
        each = left.pop()
        size += len(each) if isinstance(each, str | list | Mapping) else 1
        if size <= most and isinstance(each, list | Mapping):
            left += each if isinstance(each, list) else [*each, *each.values()]
    return size > most


def _length_of_patterns(value: Any) -> int:
    """The characters of the patterns of a field."""
    texts = [value.get(key) for key in ("regex", "when")] if isinstance(value, Mapping) else []
    return sum(len(text) for text in texts if isinstance(text, str))


def _wrong_values(value: Mapping[str, Any], source: str) -> list[tuple[str, str]]:
    """Keys with a wrong value, and what is wrong with each."""
    wrong: list[tuple[str, str]] = []
    for key in (source, "attribute", "regex", "when"):
        if key in value and not isinstance(value[key], str):
            wrong.append((key, f"must be text (got {str(value[key])[:40]!r})"))
        elif len(value.get(key, "")) > LONGEST:
            wrong.append((key, f"is longer than {LONGEST} characters"))
    wrong += [
        (key, f"must be true or false (got {str(value[key])[:40]!r})")
        for key in ("many", "required")
        if not isinstance(value.get(key, False), bool)
    ]
    kind = value.get("type", "text")
    if kind not in TYPES:
        close = difflib.get_close_matches(str(kind)[:40], TYPES, n=1)
        hint = f", did you mean {close[0]!r}?" if close else ""
        wrong.append(("type", f"unknown type {str(kind)[:40]!r}{hint} (known: {', '.join(TYPES)})"))
    elif not _fits(value.get("default"), kind, many=value.get("many") is True):
        wrong.append(("default", f"does not have the type {kind} (got {str(value['default'])[:40]!r})"))
    if value.get("attribute") and source not in ("css", "xpath"):
        wrong.append(("attribute", f"only an element has attributes, {source} has none"))
    if wrong:
        return wrong
    wrong += [(source, words) for words in _wrong_selector(source, value[source])]
    wrong += [("regex", words) for words in _refused(check_regex, value.get("regex", ""))]
    wrong += [("when", words) for words in _refused(UrlPattern, value.get("when", ""))]
    return wrong


def _wrong_selector(source: str, text: str) -> list[str]:
    if not text.strip():
        return ["is empty"]
    if len(text) > LONGEST:
        return [f"is longer than {LONGEST} characters"]
    if source == "css":
        return _refused(check_css, _without_pseudo(text.strip())[0])
    if source == "xpath":
        return _refused(check_xpath, text.strip())
    if source in ("json_ld", "microdata") and not all(part.strip() for part in text.split(".")):
        return [f"is not a path, such as Product.offers.price (got {text[:80]!r})"]
    return []


def _refused(check: Any, text: str) -> list[str]:
    try:
        if text:
            check(text)
    except (BadSelector, BadPattern) as error:
        return [f"{error} (got {text[:80]!r})"]
    return []


def _fits(value: Any, kind: str, *, many: bool) -> bool:
    if value is None:
        return True
    if many:
        return isinstance(value, list) and all(_fits(each, kind, many=False) for each in value)
    if isinstance(value, bool) and kind != "boolean":
        return False
    return isinstance(value, _DEFAULTS.get(kind, (str,)))


def _same_columns(fields: list[Field]) -> list[tuple[str, str]]:
    columns = [(column, field.name) for field in fields for column in field.columns]
    owners: dict[str, str] = {}
    problems = []
    for column, name in columns:
        if column in owners:
            problems.append((name, f"it and {owners[column]} both need the column {column}: a price has a currency"))
        owners.setdefault(column, name)
    return problems


def _without_pseudo(selector: str) -> tuple[str, str]:
    """The selector without `::text` or `::attr(NAME)` at its end, and the attribute."""
    found = _PSEUDO.search(selector[-LONGEST:])
    return (selector[: -len(found[0])], found[2] or "") if found else (selector, "")


def _short_form(text: str) -> dict[str, Any]:
    """The source and path of a field that is only a text: `h1::text`, `//h1`, `json-ld:Product.name`, `og:title`."""
    text = text.strip()
    for prefix, source in _PREFIXES.items():
        if text.lower().startswith(prefix):
            return {source: text[len(prefix) :].strip()}
    if text.startswith("og:"):
        return {"opengraph": text}
    return {"xpath" if text.startswith(_XPATH_STARTS) else "css": text}
