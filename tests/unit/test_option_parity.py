"""Whatever the API can ask for, the command line can ask for too: fields of specs, fields of jobs, and verbs."""

import click
import pytest

from silkline.api.routes.jobs import RetryBody
from silkline.api.submission import NEVER, JobRequest
from silkline.cli.add import add
from silkline.cli.crawl import crawl
from silkline.cli.fetch import fetch
from silkline.cli.jobs import jobs
from silkline.cli.map import map_site
from silkline.cli.option_errors import option_of
from silkline.model.job import Verb
from silkline.model.spec import MapSpec, PageSpec, SiteSpec, Spec

# What a map does not do: it keeps neither the text of pages nor answers.
NOT_FOR_MAPS = {"content", "keep", "drop", "no_links", "no_images", "warc"}


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
