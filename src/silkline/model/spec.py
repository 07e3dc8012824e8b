"""The fields of each kind of job: one model per kind. Names are the options of the command line, with underscores.

A spec refuses unknown fields and names each error. It contains only values: no path, no code, no launch flag.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from silkline.errors import FieldProblem, SpecError
from silkline.model.credential_origins import is_origin
from silkline.model.css_selector import MAX_SELECTORS, checked_selector
from silkline.model.duration import seconds_of
from silkline.model.fields import LONGEST, BadFields, as_table, read_fields
from silkline.model.framing_headers import FRAMING_HEADERS
from silkline.model.ids import is_id
from silkline.model.limited_lists import at_most, checked_patterns
from silkline.model.pattern import MAX_PATTERNS
from silkline.model.redaction import SECRET_FIELDS
from silkline.model.sharding import MOST_SHARDS
from silkline.model.url import canonical
from silkline.model.user_info import REFUSAL, has_user_info, without_user_info

MOST_PROBLEMS = 20  # in one error message; a payload may have 100,000
PROXY_SCHEMES = ("http", "https", "socks4", "socks4a", "socks5", "socks5h")
MAX_URLS = 100_000  # in one payload; use a seeds file for more
MOST_FIELDS = 1_000
LONGEST_TIME = 10**10  # seconds, three hundred years
MOST_PAGES = 10**15  # of a limit: counters of the crawl and of both databases have 64 bits
LONGEST_NAME = 100
MISSING = "is missing"
MOST_HEADERS = 100
MOST_HEADER_BYTES = 32_768
TOO_MANY_HEADERS = f"must be at most {MOST_HEADERS} with {MOST_HEADER_BYTES:,} bytes in all"
MOST_FACTS = 20  # more than there are: a fact may stand twice
MOST_LANGUAGES = 100
MOST_PRIVATE = 1_000


def _job_id(id: str) -> str:
    if not is_id(id):
        raise ValueError("is not the id of a job")
    return id


def _web_url(url: str) -> str:
    url = url.strip()
    if len(url) > 8192:
        raise ValueError("is longer than 8192 characters")
    scheme, separator, rest = url.partition("://")
    if not separator or scheme.lower() not in ("http", "https"):
        raise ValueError("must start with http:// or https://")
    authority = re.split(r"[/\\?#]", rest.lstrip("/\\"), maxsplit=1)[0]
    if not authority.rpartition("@")[2] or re.search(r"[\x00-\x20\x7f]", url):
        raise ValueError("is not a web address")
    if canonical(url) is None:
        raise ValueError("is not a web address")
    if has_user_info(url):
        raise ValueError(REFUSAL)
    return url


def _origin(text: str) -> str:
    if not is_origin(text):
        raise ValueError("is not an origin such as https://example.com, without a path")
    return text


def _content(content: str) -> str:
    """`main` is another name of `markdown`."""
    return "markdown" if content == "main" else content


def _proxy(proxy: str) -> str:
    """The address of a proxy, with its scheme: `host:port` alone means HTTP."""
    if re.fullmatch(r"[\w.-]+:\d{1,5}", proxy):
        proxy = f"http://{proxy}"
    scheme, separator, rest = proxy.partition("://")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if not separator or scheme.lower() not in PROXY_SCHEMES or canonical(f"http://{authority}/") is None:
        raise ValueError("must look like http://HOST:PORT or socks5h://HOST:PORT")
    return proxy


def _header_name(name: str) -> str:
    if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
        raise ValueError("is not a header name")
    return name


def _own_header(name: str) -> str:
    if name.lower() in FRAMING_HEADERS:
        raise ValueError("cannot be set, because Silkline sets it for each request: leave it out")
    return _header_name(name)


def _not_too_long(headers: dict[str, str]) -> dict[str, str]:
    size = sum(len(name) + len(value) + 4 for name, value in headers.items())
    if size > MOST_HEADER_BYTES:
        raise ValueError(TOO_MANY_HEADERS)
    return headers


def _header_value(value: str) -> str:
    if re.search(r"[\r\n\x00]", value):
        raise ValueError("must not contain line breaks")
    if re.search(r"[^\t -~\xa0-\xff]", value):
        raise ValueError("must not contain control characters or characters beyond Latin-1")
    return value


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _duration(value: Any) -> Any:
    return seconds_of(value) if isinstance(value, str) else value


def _excluded_host(line: str) -> str:
    from silkline.model.excluded_host import excluded_host  # most commands do not need its imports

    return excluded_host(line)


def _fields(given: dict[str, Any]) -> dict[str, Any]:
    try:
        return as_table(read_fields(given))
    except BadFields as error:
        raise ValueError(str(error)) from None


def _each(selector: str) -> str:
    try:
        read_fields({"row": {"css": selector}})
    except BadFields as error:
        raise ValueError(error.problems[0][1]) from None
    return selector


_DURATION_SCHEMA = {
    "anyOf": [
        {"type": "number", "minimum": 0, "description": "Seconds."},
        {"type": "string", "pattern": r"^[0-9]{1,3}(ms|s|m|h|d)?$", "description": "Such as 30s, 10m, 2h or 1d."},
    ]
}
Duration = Annotated[float, BeforeValidator(_duration), WithJsonSchema(_DURATION_SCHEMA)]
"""A number of seconds, or a text with units."""
WebUrl = Annotated[str, AfterValidator(_web_url)]
JobId = Annotated[str, AfterValidator(_job_id)]
Patterns = Annotated[
    tuple[str, ...],
    Field(max_length=MAX_PATTERNS),
    at_most(MAX_PATTERNS),
    BeforeValidator(_as_list),
    AfterValidator(checked_patterns),
]
CookieName = Annotated[str, AfterValidator(_header_name)]
HeaderName = Annotated[str, AfterValidator(_own_header)]
HeaderValue = Annotated[str, AfterValidator(_header_value)]
Headers = Annotated[
    dict[HeaderName, HeaderValue], at_most(MOST_HEADERS, TOO_MANY_HEADERS), AfterValidator(_not_too_long)
]
Cookies = Annotated[
    dict[CookieName, HeaderValue], at_most(MOST_HEADERS, TOO_MANY_HEADERS), AfterValidator(_not_too_long)
]
Proxy = Annotated[str, AfterValidator(_proxy)]
FieldTable = Annotated[dict[str, Any], at_most(MOST_FIELDS), AfterValidator(_fields)]
RowSelector = Annotated[str, Field(max_length=LONGEST), AfterValidator(_each)]
Fact = Literal["all", "headers", "headings", "hreflang", "images", "links", "structured"]
Facts = Annotated[tuple[Fact, ...], at_most(MOST_FACTS), BeforeValidator(_as_list)]
Content = Annotated[Literal["main", "markdown", "full", "text", "none"], AfterValidator(_content)]
PageContent = Annotated[Literal["main", "markdown", "full", "text", "html", "none"], AfterValidator(_content)]
Selectors = Annotated[
    tuple[Annotated[str, AfterValidator(checked_selector)], ...],
    Field(max_length=MAX_SELECTORS),
    at_most(MAX_SELECTORS),
    BeforeValidator(_as_list),
]
Speed = Literal["polite", "normal", "fast", "max"]
Origin = Annotated[str, AfterValidator(_origin)]
ExcludedHost = Annotated[str, AfterValidator(_excluded_host)]
Private = Annotated[tuple[str, ...], FailFast(), at_most(MOST_PRIVATE)]
AnySpec = TypeVar("AnySpec", bound="Spec")


class Spec(BaseModel):
    """The base of every spec."""

    # The validator of a spec is built when it is needed: most commands need none, and the rest one.
    model_config = ConfigDict(frozen=True, extra="forbid", str_max_length=1_000_000, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, given: Any) -> Any:
        """Refuse very many fields before each of them becomes an error, also in a model inside of another one."""
        if isinstance(given, Mapping) and len(given) > MOST_FIELDS:
            raise ValueError(f"can have at most {MOST_FIELDS:,} fields")
        return given

    def request_url(self) -> str | None:
        """The subject of the job: its first URL, or for a job without a URL its query."""
        return None


class LimitedSpec(Spec):
    """A job with a CPU limit of its own, in cores."""

    cpus: float | None = Field(None, gt=0, le=1_000, allow_inf_nan=False)


class UrlSpec(LimitedSpec):
    """A job with one URL or several."""

    url: WebUrl | None = None
    urls: Annotated[tuple[WebUrl, ...], FailFast(), at_most(MAX_URLS)] = Field((), max_length=MAX_URLS)

    @model_validator(mode="after")
    def _some_url(self) -> UrlSpec:
        if not self.url and not self.urls:
            raise ValueError("a url is needed: set url, or urls for several")
        return self

    def all_urls(self) -> tuple[str, ...]:
        return ((self.url,) if self.url else ()) + self.urls

    def request_url(self) -> str | None:
        return next(iter(self.all_urls()), None)


class Shaping(Spec):
    """What is kept of each page, and in which form. `keep` and `drop` are CSS selectors."""

    content: PageContent = "markdown"
    keep: Selectors = ()
    drop: Selectors = ()
    no_links: bool = False
    no_images: bool = False
    link_titles: bool = False


class Fetching(Shaping):
    """How pages are fetched."""

    render: Literal["never", "auto", "always"] = "never"
    user_agent: HeaderValue | None = Field(None, max_length=500)
    contact: HeaderValue | None = Field(None, max_length=500)
    headers: Headers = Field(default_factory=dict)
    cookies: Cookies = Field(default_factory=dict)
    # The origins that get headers and cookies. None: those of the URLs.
    headers_for: Annotated[tuple[Origin, ...] | None, FailFast(), at_most(MAX_URLS)] = Field(None, max_length=MAX_URLS)
    proxy: Proxy | None = None
    allow_private: Private = ()
    ignore_robots: bool = False
    delay: Duration | None = Field(None, ge=0, le=3600)
    speed: Speed = "normal"
    warc: bool = False


class Extracting(Spec):
    """What is taken from each page besides its content: `fields` that the user names (model/fields.py), and facts.

    `each` is a CSS selector: every element that it finds is a row with these fields. A job with `require_fields` fails
    if a field is found on a smaller share of its pages.
    """

    fields: FieldTable = Field(default_factory=dict)
    each: RowSelector | None = None
    require_fields: float | None = Field(None, gt=0, le=1)
    facts: Facts = ()

    @model_validator(mode="after")
    def _some_field(self) -> Extracting:
        for name in ("each", "require_fields"):
            if getattr(self, name) is not None and not self.fields:
                raise ValueError(f"{name} needs fields")
        return self


class Capturing(Spec):
    """The files that are made of each page that is rendered: a screenshot of the page or of its top, and a PDF."""

    screenshot: Literal["full", "viewport"] | None = None
    pdf: bool = False

    @model_validator(mode="after")
    def _is_rendered(self) -> Capturing:
        for name in ("screenshot", "pdf"):
            if getattr(self, name) and getattr(self, "render", "never") == "never":
                raise ValueError(f"{name} needs a browser: set render to always (auto: only pages that need scripts)")
        return self


class PageSpec(UrlSpec, Fetching, Extracting, Capturing):
    """One page, or a batch of pages, without following links."""

    keep_html: bool = False
    max_age: Duration | None = Field(None, ge=0, le=LONGEST_TIME)


class CrawlSizes(LimitedSpec):
    """The number of processes and of concurrent requests of a crawl, and its CPU limit."""

    fetchers: int | None = Field(None, ge=1, le=256)
    parsers: int | None = Field(None, ge=0, le=256)
    concurrency: int | None = Field(None, ge=1, le=10_000)


class SiteSpec(UrlSpec, Fetching, Extracting, Capturing, CrawlSizes):
    """A crawl: one site or a million hosts."""

    keep_html: bool = False
    limit: int | None = Field(None, ge=1, le=MOST_PAGES)
    depth: int | None = Field(None, ge=0, le=MOST_PAGES)
    scope: Literal["host", "domain", "prefix", "any"] = "host"
    include: Patterns = ()
    exclude: Patterns = ()
    exclude_hosts: Annotated[tuple[ExcludedHost, ...], FailFast(), at_most(MAX_URLS)] = Field((), max_length=MAX_URLS)
    seeded_hosts_only: bool = False
    seeded: bool = False  # the seeds are already in the ledger, written from a seeds file
    planting: bool = False  # some seeds are missing: the file is still being read, or the reading process was killed
    max_duration: Duration | None = Field(None, gt=0, le=LONGEST_TIME)
    shards: int | None = Field(None, ge=1, le=MOST_SHARDS)

    @model_validator(mode="after")
    def _some_url(self) -> SiteSpec:
        if not self.url and not self.urls and not self.seeded:
            raise ValueError("a url is needed: set url, or urls for several")
        return self


class ExtractSpec(Extracting, Shaping):
    """Other fields, or other content, from the stored pages of a job. It sends no request."""

    job: JobId = Field(min_length=1, max_length=100)


class MapSpec(UrlSpec, Fetching):
    """The URLs of a site, from its sitemaps and, with `links`, from its links."""

    limit: int | None = Field(None, ge=1, le=MOST_PAGES)
    links: bool = False


class YoutubeSpec(UrlSpec):
    """Transcripts of videos, playlists or channels."""

    languages: Annotated[tuple[str, ...], at_most(MOST_LANGUAGES)] = ("en",)
    generated: bool = True
    limit: int | None = Field(None, ge=1, le=MOST_PAGES)


class BlueskySpec(LimitedSpec):
    """A profile, the posts of an account, a thread or a search."""

    url: WebUrl | None = None
    actor: str | None = Field(None, min_length=1, max_length=1_000)
    search: str | None = Field(None, min_length=1, max_length=1_000)
    limit: int = Field(100, ge=1, le=100_000)

    @model_validator(mode="after")
    def _one_subject(self) -> BlueskySpec:
        if sum(subject is not None for subject in (self.url, self.actor, self.search)) != 1:
            raise ValueError("exactly one of url, actor and search is needed")
        return self

    def request_url(self) -> str | None:
        """The URL, the account or the search text."""
        return self.url or self.actor or self.search


class Crawl4aiSpec(UrlSpec):
    """Pages that crawl4ai fetches, if it is installed."""

    content: Content = "markdown"
    allow_private: Private = ()


class ExtensionSpec(UrlSpec):
    """Pages that an external worker, such as a browser extension, fetches for us."""

    content: Content = "markdown"


class DiagnosticSpec(LimitedSpec):
    """What the diagnostic job does; see kinds/diagnostic.py. Available only with the setting `test_kinds`."""

    do: Literal[
        "nothing", "work", "sleep", "spin", "hang", "leak", "segfault", "escape", "flood", "exit", "disobey"
    ] = "nothing"
    seconds: float = Field(0.0, ge=0)
    steps: int = Field(1, ge=0)
    code: int = 0
    size: int = Field(0, ge=0)
    text: str = ""


def validate(spec: type[AnySpec], payload: Mapping[str, Any]) -> AnySpec:
    """Check a payload and return the spec, or raise a `SpecError` that names every wrong field in one line."""
    if not isinstance(payload, Mapping):
        raise SpecError("a payload must be a JSON object")
    if len(payload) > MOST_FIELDS:
        raise SpecError(f"a payload can have at most {MOST_FIELDS} fields")
    try:
        return spec.model_validate(dict(payload))
    except ValidationError as error:
        details = error.errors(include_url=False)
        found = tuple(_problem(spec, detail) for detail in details[:MOST_PROBLEMS])
        more = [f"and {len(details) - MOST_PROBLEMS} more"] if len(details) > MOST_PROBLEMS else []
        raise SpecError("; ".join([*map(_sentence, found), *more]), found) from None


def _problem(spec: type[Spec], detail: Any) -> FieldProblem:
    name = ".".join(str(part)[:LONGEST_NAME] for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        name = name[:LONGEST_NAME]
        close = difflib.get_close_matches(str(detail["loc"][-1])[:LONGEST_NAME], spec.model_fields, n=1)
        return FieldProblem("", f"unknown field {name!r}" + (f": did you mean {close[0]!r}?" if close else ""))
    if detail["type"] == "missing":
        return FieldProblem(name, MISSING)
    message: str = detail["msg"].removeprefix("Value error, ")
    given = detail["input"]
    secret = not name or detail["loc"][0] in SECRET_FIELDS or isinstance(given, Mapping)
    shown = "" if secret or _is_long(given) else without_user_info(str(given))[:80]
    return FieldProblem(name, f"{message[0].lower()}{message[1:]}" if name else message, shown)


def _is_long(given: Any) -> bool:
    """Whether this is a list whose text would take long to make."""
    if not isinstance(given, list | tuple):
        return False
    return len(given) > MOST_PROBLEMS or any(isinstance(each, list | Mapping) or len(str(each)) > 80 for each in given)


def _sentence(problem: FieldProblem) -> str:
    if not problem.field:
        return problem.message
    if problem.message == MISSING:
        return f"the field `{problem.field}` {MISSING}"
    got = f" (got {problem.given!r})" if problem.given else ""
    return f"{problem.field}: {problem.message}{got}"
