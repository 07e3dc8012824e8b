"""Whatever the API can ask for, the command line can ask for too: fields of specs, fields of jobs, and verbs."""

from datetime import UTC, datetime
from inspect import signature
from typing import get_args

import click
import pytest

from silkline.api.mcp import Tools
from silkline.api.routes.exports import ExportQuery
from silkline.api.routes.jobs import RetryBody
from silkline.api.submission import NEVER, JobRequest
from silkline.cli.add import add
from silkline.cli.content_options import MODES
from silkline.cli.crawl import crawl
from silkline.cli.extract import extract
from silkline.cli.fetch import fetch
from silkline.cli.jobs import jobs
from silkline.cli.map import map_site
from silkline.cli.option_errors import option_of
from silkline.cli.results import results
from silkline.crawl.plan import Plan
from silkline.export.download import DOWNLOADS
from silkline.export.open import FORMATS
from silkline.model.cached import SHAPING
from silkline.model.ids import new_id
from silkline.model.job import Verb
from silkline.model.spec import ExtractSpec, MapSpec, PageSpec, Shaping, SiteSpec, Spec, validate

# What a map does not do: it keeps neither the text of pages nor answers.
NOT_FOR_MAPS = {"content", "keep", "drop", "no_links", "no_images", "link_titles", "warc"}


def names(command: click.Command) -> set[str]:
    found: set[str] = set()
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            found |= {option for option in parameter.opts if option.startswith("--")}
        else:
            found.add("URL")
    return found


@pytest.mark.parametrize(
    ("command", "spec", "left_out"),
    [(fetch, PageSpec, set()), (crawl, SiteSpec, set(NEVER)), (map_site, MapSpec, NOT_FOR_MAPS)],
    ids=["fetch", "crawl", "map"],
)
def test_every_field_of_a_spec_has_an_option(command: click.Command, spec: type[Spec], left_out: set[str]) -> None:
    wanted = {option_of(field) for field in spec.model_fields if field not in left_out}
    assert wanted - names(command) == set()


def test_every_field_of_a_posted_job_has_an_option() -> None:
    wanted = {option_of(field) for field in JobRequest.model_fields}
    assert wanted - names(add) == set()


def test_every_verb_of_the_api_is_a_command() -> None:
    known = set(jobs.list_commands(click.Context(jobs)))
    assert {verb.value for verb in Verb} - known == set()


def test_every_field_of_a_retry_has_an_option() -> None:
    assert {option_of(field) for field in RetryBody.model_fields} - names(jobs.commands["retry"]) == set()


def test_every_way_to_shape_the_content_is_offered_everywhere() -> None:
    shaping = set(Shaping.model_fields)
    for command in (fetch, crawl, extract):
        assert {option_of(field) for field in shaping} - names(command) == set(), command.name
    for tool in (Tools.fetch_page, Tools.crawl_site):
        assert shaping - set(signature(tool).parameters) == set(), tool.__name__
    assert set(SHAPING) == shaping - {"content"}, "a shaped page must not be used for other jobs"
    assert set(Plan.__struct_fields__) >= shaping


@pytest.mark.parametrize("spec", [PageSpec, SiteSpec, ExtractSpec])
@pytest.mark.parametrize("content", ["main", "markdown", "full", "text", "html", "none"])
def test_every_form_of_content_can_be_asked_for(spec: type[Spec], content: str) -> None:
    subject = {"job": new_id(datetime.now(UTC))} if spec is ExtractSpec else {"url": "https://a.example/"}
    made = validate(spec, {**subject, "content": content})
    assert made.content == ("markdown" if content == "main" else content)  # type: ignore[attr-defined]
    assert content in MODES


def test_every_format_of_the_command_line_is_one_of_the_api() -> None:
    assert set(FORMATS) == set(DOWNLOADS) == set(get_args(ExportQuery.model_fields["format"].annotation))
    assert "--chunk-size" in names(results)
    assert "chunk_size" in ExportQuery.model_fields
