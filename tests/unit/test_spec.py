"""What a payload may hold: wrong fields are named, near misses are guessed, nothing dangerous is kept."""

from typing import Any

import pytest

from silkline.errors import SpecError
from silkline.model.spec import (
    MAX_URLS,
    BlueskySpec,
    Crawl4aiSpec,
    DiagnosticSpec,
    ExtensionSpec,
    ExtractSpec,
    MapSpec,
    PageSpec,
    SiteSpec,
    Spec,
    YoutubeSpec,
    validate,
)

URL = "https://example.com/a"
WITH_URL = [PageSpec, SiteSpec, MapSpec, YoutubeSpec, Crawl4aiSpec, ExtensionSpec]


def problem(spec: type[Spec], **payload: Any) -> str:
    with pytest.raises(SpecError) as wrong:
        validate(spec, payload)
    assert "\n" not in str(wrong.value)
    return str(wrong.value)


@pytest.mark.parametrize("spec", WITH_URL)
def test_one_url_or_several(spec: type[PageSpec]) -> None:
    one = validate(spec, {"url": URL})
    several = validate(spec, {"urls": [URL, "http://b.example/"]})
    both = validate(spec, {"url": "http://first.example/", "urls": [URL]})
    assert isinstance(one, spec)
    assert isinstance(several, spec)
    assert isinstance(both, spec)
    assert (one.request_url(), one.all_urls()) == (URL, (URL,))
    assert (several.request_url(), several.all_urls()) == (URL, (URL, "http://b.example/"))
    assert both.all_urls() == ("http://first.example/", URL)
    assert problem(spec) == "a url is needed: set url, or urls for several"


@pytest.mark.parametrize("spec", [*WITH_URL, BlueskySpec, DiagnosticSpec])
def test_a_stored_payload_is_read_back_as_the_same_spec(spec: type[Spec]) -> None:
    given = {} if spec is DiagnosticSpec else {"url": URL}
    checked = validate(spec, given)
    assert validate(spec, checked.model_dump(mode="json")) == checked
    assert validate(spec, checked.model_dump(mode="json", exclude_defaults=True)) == checked


def test_a_seeded_crawl_needs_no_url() -> None:
    assert validate(SiteSpec, {"seeded": True}).request_url() is None


def test_an_unknown_field_is_refused_with_a_guess() -> None:
    assert problem(SiteSpec, url=URL, limt=5) == "unknown field 'limt': did you mean 'limit'?"
    assert problem(SiteSpec, url=URL, max_durations=5) == "unknown field 'max_durations': did you mean 'max_duration'?"
    assert problem(PageSpec, url=URL, zzz=1) == "unknown field 'zzz'"
    assert problem(PageSpec, url=URL, depth=1).startswith("unknown field 'depth'")


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("limit", 0, "limit: input should be greater than or equal to 1 (got '0')"),
        ("limit", "many", "limit: input should be a valid integer"),
        ("depth", -1, "depth: input should be greater than or equal to 0"),
        ("scope", "galaxy", "scope: input should be 'host', 'domain', 'prefix' or 'any' (got 'galaxy')"),
        ("speed", "ludicrous", "speed: input should be 'polite', 'normal', 'fast' or 'max'"),
        ("include", "(", "include.0: is not a regular expression"),
        ("exclude", ["ok", "["], "exclude.1: is not a regular expression"),
        ("delay", 4000, "delay: input should be less than or equal to 3600"),
        ("fetchers", 0, "fetchers: input should be greater"),
        ("headers", {"a b": "c"}, "headers.a b.[key]: is not a header name"),
        ("headers", {"X": "a\r\nY: b"}, "headers.X: must not contain line breaks"),
        ("headers", {"Content-length": "50"}, "headers.Content-length.[key]: cannot be set, because Silkline sets it"),
        ("headers", {"host": "b.example"}, "headers.host.[key]: cannot be set, because Silkline sets it"),
        ("headers", {f"h{n}": "" for n in range(101)}, "headers: must be at most 100 with 32,768 bytes in all"),
        ("cookies", {"c": 32_768 * "x"}, "cookies: must be at most 100 with 32,768 bytes in all"),
        ("cookies", {"a": "b\n"}, "cookies.a: must not contain line breaks"),
        ("headers", {"X": "日"}, "headers.X: must not contain control characters or characters beyond Latin-1"),
        ("user_agent", "a\x01b", "user_agent: must not contain control characters or characters beyond Latin-1"),
        ("contact", "a\r\nX-Evil: 1", "contact: must not contain line breaks"),
        ("render", "maybe", "render: input should be 'never', 'auto' or 'always'"),
        ("max_duration", 0, "max_duration: input should be greater than 0"),
    ],
)
def test_a_wrong_value_names_its_field(field: str, value: Any, says: str) -> None:
    assert says in problem(SiteSpec, url=URL, **{field: value})


def test_everything_that_is_wrong_is_said_at_once() -> None:
    said = problem(SiteSpec, url="ftp://x", limit=0, nonsense=1)
    assert [part.split(":")[0].split("'")[0].strip() for part in said.split("; ")] == ["url", "limit", "unknown field"]


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("example.com", "must start with http:// or https://"),
        ("file:///etc/passwd", "must start with http:// or https://"),
        ("javascript://alert(1)", "must start with http:// or https://"),
        ("", "must start with http:// or https://"),
        ("http://", "is not a web address"),
        ("https:///", "is not a web address"),
        ("http://?q", "is not a web address"),
        ("http://#top", "is not a web address"),
        ("http://user@", "is not a web address"),
        ("http://a b/", "is not a web address"),
        ("http://a/\x00", "is not a web address"),
        ("http://a/" + "x" * 9000, "is longer than 8192 characters"),
    ],
)
def test_what_is_no_web_address(url: str, says: str) -> None:
    assert says in problem(PageSpec, url=url)
    assert says in problem(PageSpec, urls=[URL, url])


@pytest.mark.parametrize("url", [URL, "HTTP://EXAMPLE.COM", "https://bücher.example/ü?q=1#x", "http://[::1]:8080/"])
def test_what_is_a_web_address(url: str) -> None:
    assert validate(PageSpec, {"url": f"  {url}\n"}).request_url() == url


@pytest.mark.parametrize(
    "url",
    [
        "https://user:secret@example.com/a",
        "https://:secret@example.com/a",
        "https://a:b@c:secret@example.com/a",
        "https://\\user:secret@example.com/a",
        "https://user:secret@example.com?x=1",
    ],
)
@pytest.mark.parametrize("spec", [PageSpec, SiteSpec, MapSpec, YoutubeSpec, BlueskySpec, Crawl4aiSpec, ExtensionSpec])
def test_a_url_with_a_password_is_refused_without_repeating_it(spec: type[Spec], url: str) -> None:
    said = problem(spec, url=url)
    assert "contains a user name or password" in said
    assert "Authorization" in said
    assert "secret" not in said


def test_a_password_with_colons_is_not_repeated_if_the_url_is_wrong_for_another_reason() -> None:
    said = problem(PageSpec, url="https:user:secret:more@example.com/a")
    assert "https:***@example.com/a" in said
    assert "secret" not in said


@pytest.mark.parametrize("job", ["x", "last", "019a", "../etc/passwd", "\u202eabc", "G" * 36, "0" * 36])
def test_only_the_id_of_a_job_is_accepted(job: str) -> None:
    assert "job: is not the id of a job" in problem(ExtractSpec, job=job)


def test_an_at_sign_elsewhere_is_no_password() -> None:
    assert validate(PageSpec, {"url": "https://example.com/a@b?c@d"}).request_url() == "https://example.com/a@b?c@d"


@pytest.mark.parametrize(("given", "seconds"), [(5, 5), ("5", 5), ("1s", 1), ("250ms", 0.25), ("1m", 60), (0, 0)])
def test_times_in_a_payload_may_have_units(given: Any, seconds: float) -> None:
    assert validate(SiteSpec, {"url": URL, "delay": given}).delay == seconds
    assert validate(PageSpec, {"url": URL, "max_age": given}).max_age == seconds


def test_a_wrong_time_is_named() -> None:
    assert "not a duration; examples: 90 (seconds)" in problem(SiteSpec, url=URL, max_duration="soon")
    assert "greater than" in problem(SiteSpec, url=URL, max_duration="0s")


def test_excluded_hosts_are_checked_and_brought_to_one_spelling() -> None:
    lines = ["Example.COM", "https://a.example:8080/x?y", "*.b.example", "bücher.example"]
    spec = validate(SiteSpec, {"url": URL, "exclude_hosts": lines})
    assert spec.exclude_hosts == ("example.com", "a.example:8080", "*.b.example", "xn--bcher-kva.example")
    assert "exclude_hosts.1: 'no host!' is not a host" in problem(SiteSpec, url=URL, exclude_hosts=["a.b", "no host!"])


def test_too_many_urls_belong_in_a_file() -> None:
    assert problem(SiteSpec, urls=[URL] * (MAX_URLS + 1)) == "urls: has 100,001 items, 100,000 are allowed"


@pytest.mark.parametrize("payload", [None, [], "text", 5])
def test_a_payload_is_an_object(payload: Any) -> None:
    with pytest.raises(SpecError, match="a payload must be a JSON object"):
        validate(PageSpec, payload)


def test_bluesky_is_about_exactly_one_thing() -> None:
    assert validate(BlueskySpec, {"actor": "someone.example"}).request_url() == "someone.example"
    assert validate(BlueskySpec, {"search": "terns and gulls"}).request_url() == "terns and gulls"
    assert validate(BlueskySpec, {"url": URL}).request_url() == URL
    for wrong in ({}, {"actor": "a", "search": "b"}):
        assert problem(BlueskySpec, **wrong) == "exactly one of url, actor and search is needed"


def test_a_spec_cannot_be_changed() -> None:
    spec = validate(SiteSpec, {"url": URL})
    with pytest.raises(ValueError, match="frozen"):
        spec.limit = 5  # type: ignore[attr-defined]


def test_one_pattern_may_be_given_without_a_list() -> None:
    spec = validate(SiteSpec, {"url": URL, "include": "/blog/"})
    assert isinstance(spec, SiteSpec)
    assert spec.include == ("/blog/",)


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({"urls": ["x"] * 50_000}, "urls.0: must start with"),
        ({"url": "https://example.com/", **{f"field{number}": 1 for number in range(50_000)}}, "at most 1000 fields"),
        (
            {"url": "https://example.com/", "headers": {f"h{number}": "\n" for number in range(50_000)}},
            "headers: must be at most 100",
        ),
    ],
    ids=["urls", "fields", "headers"],
)
def test_a_payload_with_very_many_mistakes_is_refused_with_a_few_of_them(payload: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError) as caught:
        validate(PageSpec, payload)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 5_000


@pytest.mark.parametrize(
    "given", [{"screenshot": "full"}, {"pdf": True}, {"screenshot": "viewport", "render": "never"}]
)
@pytest.mark.parametrize("spec", [PageSpec, SiteSpec])
def test_files_of_pages_need_a_browser(spec: type[Spec], given: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match="needs a browser: set render to always"):
        validate(spec, {"url": "https://example.com/", **given})
    assert validate(spec, {"url": "https://example.com/", **given, "render": "auto"})
