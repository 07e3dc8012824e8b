"""However many items a request has, few of them are checked: each wrong one would be kept as an error."""

from __future__ import annotations

from typing import Any, get_origin

import pytest
from pydantic import ValidationError

from silkline.api.routes.external import ClaimBody, ResultsBody
from silkline.api.routes.jobs import NoFields, RetryBody, SizesBody
from silkline.api.routes.tokens import TokenBody
from silkline.api.submission import FetchRequest, JobRequest
from silkline.api.web import forms
from silkline.errors import SpecError
from silkline.kinds import specs
from silkline.model import pattern, selector_check
from silkline.model.fields import MOST_PROBLEMS, BadFields, read_fields
from silkline.model.pattern import MAX_LENGTH_TOGETHER, MAX_PATTERNS
from silkline.model.spec import MAX_URLS, PageSpec, SiteSpec, Spec, validate

URL = "https://example.com/"
MANY = 20_000
REQUESTS = (JobRequest, FetchRequest, ClaimBody, ResultsBody, SizesBody, RetryBody, NoFields, TokenBody)
FREE = {"metadata"}  # any JSON, limited in bytes


def containers() -> list[tuple[type[Spec], str]]:
    models = (*specs.BUILT_IN.values(), *REQUESTS)
    found = []
    for model in models:
        for name, field in model.model_fields.items():
            kinds = [field.annotation, *getattr(field.annotation, "__args__", ())]
            if any((get_origin(kind) or kind) in (tuple, list, dict) for kind in kinds) and name not in FREE:
                found.append((model, name))
    return found


@pytest.mark.parametrize(("model", "name"), containers())
@pytest.mark.parametrize(
    "many", [[["wrong"]] * MANY, {f"a{n}\n": {"wrong": 1} for n in range(MANY)}], ids=["list", "object"]
)
def test_a_long_list_of_wrong_items_becomes_few_errors(model: type[Spec], name: str, many: Any) -> None:
    with pytest.raises(ValidationError) as wrong:
        model.model_validate({name: many})
    assert wrong.value.error_count() < 10


def test_a_page_with_very_many_wrong_fields_becomes_one_error() -> None:
    with pytest.raises(ValidationError) as wrong:
        ResultsBody.model_validate({"pages": [{f"k{number}": 1 for number in range(MANY)}] * 3})
    assert wrong.value.error_count() <= 2


class Compiled:
    """Counts the patterns that are compiled."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.texts: list[str] = []
        before = pattern.compile_text

        def compile_text(text: str, *, captures: bool = False) -> Any:
            self.texts.append(text)
            return before(text, captures=captures)

        monkeypatch.setattr(pattern, "compile_text", compile_text)
        monkeypatch.setattr(selector_check, "compile_text", compile_text)


@pytest.mark.parametrize(
    ("patterns", "compiled", "words"),
    [
        ([r"\pL{1000}" * 33] * 5_000, 0, "5,000 items"),
        ([r"\pL{1000}" * 33] * 60, 1, "include.0: "),
        ([r"(?:\pL{9}){0}" * 50] * 100, 0, "20,000 characters together: use fewer"),
        ([r"/a{100}"] * 100, 60, "too large together"),
        ([*["/a"] * 9, "(", "("], 10, "include.9: "),
    ],
)
def test_few_patterns_of_a_refused_request_are_compiled(
    monkeypatch: pytest.MonkeyPatch, patterns: list[str], compiled: int, words: str
) -> None:
    seen = Compiled(monkeypatch)
    with pytest.raises(SpecError) as refused:
        validate(SiteSpec, {"url": URL, "include": patterns})
    assert words in str(refused.value)
    assert len(seen.texts) <= compiled


def test_a_request_that_is_sensible_is_accepted_and_its_patterns_are_compiled_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = Compiled(monkeypatch)
    include = [f"^https://example\\.com/section-{number}/[a-z0-9-]+/page-[0-9]+$" for number in range(MAX_PATTERNS)]
    fields = {f"f{n}": {"css": f"div.box > p.c{n}", "regex": "([0-9]+) EUR", "when": f"/p{n}/"} for n in range(50)}
    urls = [f"{URL}{number}" for number in range(MAX_URLS)]
    spec = validate(SiteSpec, {"urls": urls, "include": include, "exclude": include, "fields": fields})
    assert (len(spec.urls), len(spec.fields)) == (MAX_URLS, 50)
    assert len(seen.texts) == 2 * MAX_PATTERNS + 2 * 50


def test_patterns_of_fields_are_few_or_short_and_few_wrong_ones_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Compiled(monkeypatch)
    size = MAX_LENGTH_TOGETHER // 50 + 1
    with pytest.raises(BadFields, match="20,000 characters together"):
        read_fields({f"f{n}": {"css": "p", "regex": "a" * size} for n in range(50)})
    assert seen.texts == []
    with pytest.raises(BadFields):
        read_fields({f"f{n}": {"css": "p", "regex": "("} for n in range(100)})
    assert len(seen.texts) == MOST_PROBLEMS


def test_an_error_repeats_little_of_the_request() -> None:
    for given in (
        {"cookies": {"x" * 500_000 + "\n": "a"}},
        {"keep": 5, "content": ["x" * 500_000]},
        {"fields": {"a b" * 30_000: 1}},
    ):
        with pytest.raises(SpecError) as refused:
            validate(PageSpec, {"url": URL, **given})
        assert len(str(refused.value)) < 2_000


def test_a_form_that_is_refused_shows_no_huge_text_again() -> None:
    form = {"url": "example.com", "include": "(\n" * 200_000, "exclude": "/a\n/b"}
    shown, words = forms.shown_again(form)
    assert shown == {"url": "example.com", "exclude": "/a\n/b"}
    assert "go back" in words["include"]
