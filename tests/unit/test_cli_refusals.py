"""Each wrong command line is refused with exit code 2 and one line that says what is wrong; nothing is changed."""

from pathlib import Path

import pytest

from silkline.cli.codes import USAGE
from silkline.cli.exits import run

ADD = ("jobs", "add", "--kind", "site")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("jobs", "lst"), "No such command"),
        (("jobs", "ls", "--colour"), "--colour"),
        (("jobs", "ls", "--status", "lost"), "--status"),
        (("jobs", "ls", "--limit", "0"), "--limit"),
        (("jobs", "show"), "ID"),
        (("jobs", "add", "https://example.com/"), "--kind"),
        (("jobs", "add", "--kind", "sote", "https://example.com/"), "did you mean 'site'?"),
        ((*ADD, "ftp://example.com/"), "only http:// and https:// are fetched"),
        ((*ADD,), "give a URL, or its fields with --payload"),
        ((*ADD, "https://a/", "--payload", '{"url": "https://b/"}'), "twice"),
        ((*ADD, "https://a/", "--payload", '{"limit": 1, "limit": 2}'), "'limit' twice"),
        ((*ADD, "https://a/", "--payload", '{"limits": 1}'), "did you mean 'limit'?"),
        ((*ADD, "https://a/", "--payload", '{"limit": NaN}'), "NaN"),
        ((*ADD, "https://a/", "--payload", '{"limit": -1}'), "limit"),
        ((*ADD, "https://a/", "--payload", "{"), "not JSON"),
        ((*ADD, "https://a/", "--payload", ""), "not JSON"),
        ((*ADD, "https://a/", "--payload", "[1]"), "JSON object"),
        ((*ADD, "https://a/", "--payload", '{"user_agent": "\\ud800"}'), "surrogate"),
        ((*ADD, "https://a/", "--payload", "[" * 100_000), "nested"),
        ((*ADD, "https://a/", "--payload", "@missing.json"), "missing.json"),
        ((*ADD, "https://a/", "--run-at", "tomorrow"), "--run-at"),
        ((*ADD, "https://a/", "--priority", "9999999999"), "--priority"),
        (("crawl", ""), "the URL is empty; write one such as https://example.com/"),
        (("fetch", " "), "the URL is empty"),
        (("crawl", "https://me:secret@a/"), "--header 'Authorization: Basic BASE64(USER:PASSWORD)'"),
        (("--database-url", "mysql://u:secret@h/x", "jobs"), "database URL"),
    ],
)
def test_a_wrong_command_line(
    arguments: tuple[str, ...],
    word: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for variable in ("SILKLINE_DATA", "SILKLINE_DATABASE_URL", "DATABASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    assert run(arguments) == USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("silkline: ")
    assert len(err.splitlines()) == 1
    assert word in err
    assert "secret" not in err
    assert list(tmp_path.iterdir()) == []


def test_a_setting_with_no_or_several_values_is_shown_as_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SILKLINE_API_HOSTS", "a.example,b.example:443")
    assert run(["config", "--data", str(tmp_path)]) == 0
    shown = {line.split()[0]: line.split()[1] for line in capsys.readouterr().out.splitlines()}
    assert (shown["api_hosts"], shown["api_private_ranges"]) == ("a.example,b.example:443", "-")
