"""Makes a job from the JSON of a request. Refuses what a job from the API must not do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, ConfigDict, Field

from silkline.api.private_addresses import ASK_OPERATOR, OPERATOR_CAN, check_allowed, private_url
from silkline.api.request_body import RequestBody
from silkline.config import Settings
from silkline.errors import SpecError
from silkline.fetch.guard import parse_exemption
from silkline.kinds import registry, requirements, specs
from silkline.model.job import NewJob
from silkline.model.spec import PageSpec, Spec, UrlSpec, validate

INT4 = 2**31 - 1
MOST_METADATA = 65_536  # bytes
# Only the command line accepts these: a job from the API must not reach a private network, nor claim that its seeds are
# already in the ledger.
PRIVATE = ("allow_private", "proxy")
NEVER = ("seeded", "planting")


def _sane(moment: datetime) -> datetime:
    if not 2000 <= moment.year < 2200:
        raise ValueError("must be between the years 2000 and 2200")
    return moment.astimezone(UTC)


def _small(metadata: dict[str, Any]) -> dict[str, Any]:
    """Limit the size, because every list of jobs and every event contains the metadata."""
    size = len(json.dumps(metadata, ensure_ascii=False).encode(errors="surrogatepass"))
    if size > MOST_METADATA:
        raise ValueError(f"has {size:,} bytes, {MOST_METADATA:,} are allowed")
    return metadata


class JobRequest(RequestBody):
    """A request for a job. These fields belong to the job itself; all others belong to the spec of its kind."""

    model_config = ConfigDict(extra="allow", json_schema_extra=lambda schema: _one_schema_per_kind(schema))

    kind: str = Field(max_length=100)
    priority: int = Field(0, ge=-INT4, le=INT4)
    tenant: str = Field("", max_length=100)
    run_at: Annotated[AwareDatetime, AfterValidator(_sane)] | None = None
    dedupe_key: str | None = Field(None, min_length=1, max_length=200)
    max_retries: int | None = Field(None, ge=0, le=1_000)
    metadata: Annotated[dict[str, Any], AfterValidator(_small)] = Field(default_factory=dict)
    paused: bool = False


class FetchRequest(JobRequest):
    """A request for one page: a `page` job with one `url`. A caller waits for it, so it runs before crawls."""

    model_config = ConfigDict(json_schema_extra=lambda schema: _page_schema(schema))

    kind: Literal["page"] = "page"
    priority: int = Field(100, ge=-INT4, le=INT4)


def read(body: Mapping[str, Any], settings: Settings) -> NewJob:
    """The job of a request. Raises a `SpecError` that names what is wrong."""
    return new_job(validate(JobRequest, body), settings)


def new_job(options: JobRequest, settings: Settings) -> NewJob:
    """The same for a request whose own fields are valid."""
    kind = registry.kind_named(options.kind, test_kinds=settings.test_kinds)
    payload = options.model_extra or {}
    spec = specs.check_payload(kind, payload)
    refuse_private(payload, spec, settings)
    requirements.check_packages(kind.name, spec, settings)
    return NewJob(
        kind=kind.name,
        payload=spec.model_dump(mode="json", exclude_unset=True),
        request_url=spec.request_url(),
        metadata=options.metadata,
        priority=options.priority,
        tenant=options.tenant,
        run_at=options.run_at,
        dedupe_key=options.dedupe_key,
        max_retries=settings.max_retries if options.max_retries is None else options.max_retries,
        paused=options.paused,
    )


def refuse_private(payload: Mapping[str, Any], spec: Spec, settings: Settings) -> None:
    for name in NEVER:
        if payload.get(name):
            raise SpecError(f"the API does not accept {name}")
    for name in PRIVATE:
        if payload.get(name) and not settings.api_allow_private:
            why = "the job could reach addresses inside the network"
            raise SpecError(f"the API does not accept {name}: {why}. {ASK_OPERATOR}")
    if settings.api_private_ranges:
        _only_named(payload, settings.api_private_ranges)
    if isinstance(spec, UrlSpec):
        _check_addresses(payload, spec, settings)


def _check_addresses(payload: Mapping[str, Any], spec: UrlSpec, settings: Settings) -> None:
    """Refuse private addresses for every kind: an external worker cannot know whether the caller may ask for them."""
    lists_them = "allow_private" in type(spec).model_fields
    if lists_them:
        check_allowed(payload.get("allow_private") or ())
    ranges = settings.api_private_ranges
    if settings.api_allow_private and (lists_them or not ranges):
        return
    refused = private_url(spec.all_urls(), ranges if settings.api_allow_private else ())
    if not refused:
        return
    if settings.api_allow_private:
        raise SpecError(f"{refused[:200]} is a private address: the operator allows only {', '.join(ranges)}")
    remedy = ASK_OPERATOR if lists_them else OPERATOR_CAN
    raise SpecError(f"{refused[:200]} is a private address, which this server does not crawl. {remedy}")


def _only_named(payload: Mapping[str, Any], ranges: Sequence[str]) -> None:
    """Allow only the private addresses of the operator, and no proxy, because a proxy could reach any address."""
    if payload.get("proxy"):
        raise SpecError("the API does not accept proxy: the operator allows only some private addresses")
    named = [parse_exemption(each) for each in ranges]
    for text in payload.get("allow_private") or ():
        if not any(each.includes(parse_exemption(text)) for each in named):
            raise SpecError(f"allow_private {text[:100]!r}: the operator allows only {', '.join(ranges)}")


def _one_schema_per_kind(schema: dict[str, Any]) -> None:
    """The JSON schema of a request for a job: one schema for each kind, without other fields."""
    shared = schema["properties"]
    schema.clear()
    schema["oneOf"] = [_schema_of(name, spec, shared) for name, spec in specs.BUILT_IN.items()]


def _schema_of(kind: str, spec: type[Spec], shared: dict[str, Any]) -> dict[str, Any]:
    schema = spec.model_json_schema()
    return {
        "title": f"{kind} job",
        "description": schema.get("description", ""),
        "type": "object",
        "properties": {**shared, **_shown(schema), "kind": {"const": kind}},
        "required": ["kind", *schema.get("required", [])],
        "additionalProperties": False,
    }


def _page_schema(schema: dict[str, Any]) -> None:
    """The JSON schema of a request for one page: the fields of a `page` job with one URL."""
    page = PageSpec.model_json_schema()
    fields = {name: each for name, each in _shown(page).items() if name != "urls"}
    schema.clear()
    schema.update({**page, "properties": fields, "required": ["url"]})


def _shown(schema: dict[str, Any]) -> dict[str, Any]:
    """The fields that the API accepts."""
    return {name: each for name, each in schema["properties"].items() if name not in {*PRIVATE, *NEVER}}
