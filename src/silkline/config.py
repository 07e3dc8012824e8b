"""The settings: command line > environment > silkline.toml > default, with the source of each value.

This does not use pydantic-settings: its import takes 264 ms, more than a whole `jobs ls`, and it cannot tell the
source of a value. model/setting.py reads single values. `silkline config` prints the table.
"""

from __future__ import annotations

import json
import os
import select
import stat
import time
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from silkline.errors import UsageError
from silkline.model.kind import KindSettings
from silkline.model.secret_url import passwords_in
from silkline.model.setting import setting, settings_of

PREFIX = "SILKLINE_"
FILE = "silkline.toml"
# Names that other tools already use. They are read if the SILKLINE_ variable is not set.
ALIASES = {
    "database_url": "DATABASE_URL",
    "renderer_url": "RENDERER_URL",
    "max_concurrent_http": "MAX_CONCURRENT_CURL",
    "max_concurrent_chrome": "MAX_CONCURRENT_CHROME",
}
SECRET = frozenset({"api_token"})
# SILKLINE_API_TOKEN_FILE names a file that contains the value: a secret of a container, or a credential of systemd.
IN_FILE = "_FILE"
UNKNOWN = "is unknown"
LogLevel = Literal["", "debug", "info", "warning", "error"]
PIPE_SECONDS = 5.0  # for the program that writes silkline.toml into a pipe; a running worker may wait too, at a reload
SHORTEST_SECRET = 4  # characters; to hide a shorter text would make log lines unreadable
LogFormat = Literal["text", "json"]


def home_of(environ: Mapping[str, str]) -> Path:
    """The default data directory of a user. It does not depend on the current directory."""
    base = Path(environ.get("XDG_DATA_HOME") or "")
    if base.is_absolute():  # the XDG standard says that a relative path must be ignored
        return base / "silkline"
    try:
        home = Path(environ.get("HOME") or Path.home())
    except RuntimeError as error:
        raise UsageError("this user has no home directory: give a data directory with --data") from error
    return home.absolute() / ".local" / "share" / "silkline"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Every setting. Units are seconds and bytes unless the name says otherwise."""

    data: Path = setting(
        lambda: home_of(os.environ),
        "Directory of the embedded database, and of the log, WARC and page files of jobs. Default: silkline in "
        "XDG_DATA_HOME, else ~/.local/share/silkline.",
    )
    database_url: str = setting("", "sqlite:///PATH or postgresql://…; if empty, silkline.db in the data directory.")
    renderer_url: str = setting(
        "", "Connect to this running browser instead of starting one: ws://…, or http://HOST:PORT."
    )
    api_token: str = setting(
        "", "Bearer token of the API; required if the API listens on an address other than loopback."
    )
    api_hosts: tuple[str, ...] = setting((), "More host names of the API, comma separated: crawler.example.com:443.")
    api_allow_private: bool = setting(False, "Allow jobs from the API to use private addresses and proxies.")
    api_private_ranges: tuple[str, ...] = setting(
        (), "With api_allow_private: allow only these private addresses (CIDR[:PORT], comma separated), no proxies."
    )
    api_body_limit: int = setting(16 << 20, "The largest request body that the API accepts.", ge=1024)
    api_connections: int = setting(1_000, "Maximum number of connections to the API.", ge=10)
    api_connections_each: int = setting(250, "Maximum number of connections to the API from one address.", ge=5)
    api_streams: int = setting(500, "Maximum number of event streams and waiting requests.", ge=1)
    api_streams_each: int = setting(100, "Maximum number of event streams and waiting requests of one caller.", ge=1)
    api_stream_check: float = setting(
        10.0, "How often an event stream checks that its token or session is still valid.", gt=0
    )
    api_downloads: int = setting(32, "Maximum number of downloads: exports, and lists as JSON lines.", ge=1)
    api_downloads_each: int = setting(8, "Maximum number of downloads of one caller.", ge=1)
    api_head_timeout: float = setting(10.0, "Maximum time to receive the head of a request to the API.", gt=0)
    api_body_timeout: float = setting(
        30.0,
        "Maximum time to receive a request body (3 s without a token). One that arrives at 64 KiB/s may take longer.",
        gt=0,
    )
    api_answer_timeout: float = setting(
        60.0, "Close a connection whose client has not read its response for this long.", gt=0
    )
    api_probe_interval: float = setting(5.0, "How often `silkline serve` checks that its API responds.", gt=0)
    api_hung_after: float = setting(60.0, "Restart the API if it has not responded for this long.", gt=0)
    metrics_port: int = setting(
        0, "A worker serves /metrics, /healthz and /readyz at this port; 0: at none.", ge=0, le=65_535
    )
    metrics_host: str = setting(
        "127.0.0.1", "The address for metrics_port. Beyond this machine, /metrics wants the api_token."
    )
    fetchers: int = setting(
        0, "Default number of fetcher processes of a crawl; 0: one per core, but not more than hosts.", ge=0, le=256
    )
    parsers: int = setting(0, "Default number of parser processes of a crawl.", ge=0, le=256)
    max_concurrent_http: int = setting(
        300, "Default number of concurrent requests of one job, shared by its fetchers.", ge=1
    )
    max_concurrent_chrome: int = setting(
        2, "Maximum number of pages in browsers at the same time on this machine; 0: no rendering.", ge=0
    )
    bluesky_url: str = setting("https://public.api.bsky.app", "The server for jobs of the kind `bluesky`.")
    youtube_url: str = setting("https://www.youtube.com", "The server for jobs of the kind `youtube`.")
    crawl4ai: bool = setting(
        False,
        "Allow the kind `crawl4ai`. Its browser ignores Silkline's address checks: use it only on a "
        "machine that cannot reach a private network.",
    )
    contact: str = setting("", "A mail address or URL for site owners, sent in the User-Agent.")

    slots: int = setting(2, "How many jobs one worker runs at the same time.", ge=0)
    poll_interval: float = setting(1.0, "How often a worker looks for jobs when no notification arrives.", gt=0)
    wish_interval: float = setting(0.5, "How often a worker checks for pause, stop and cancel.", gt=0)
    balance_interval: float = setting(
        10.0, "How often a worker checks whether another one has fewer shards of crawls.", gt=0
    )
    heartbeat_interval: float = setting(10.0, "How often a worker renews its leases.", gt=0)
    fence_after: float = setting(
        90.0, "A worker that could not renew its leases for this long kills its runners.", gt=0
    )
    stale_after: float = setting(
        120.0, "A running job without a heartbeat for this long is considered dead and goes back to the queue.", gt=0
    )
    watchdog_interval: float = setting(60.0, "How often a worker looks for dead jobs.", gt=0)
    grace_period: float = setting(30.0, "After SIGTERM, running jobs have this long to save a checkpoint.", ge=0)
    kill_after: float = setting(
        10.0, "After pause, stop or cancel, a runner has this long to end before it is killed.", ge=0
    )
    max_retries: int = setting(3, "Default number of retries, and of crashes, that a job is allowed.", ge=0)
    backoff_base: float = setting(5.0, "Wait before the first retry; it doubles with each retry.", ge=0)
    backoff_cap: float = setting(900.0, "The longest wait before a retry.", ge=0)

    page_deadline: float = setting(3600.0, "Time limit of a job that is not a site crawl; 0: none.", ge=0)
    site_deadline: float = setting(0.0, "Time limit of a site crawl; 0: none.", ge=0)
    memory_limit: int = setting(4 << 30, "Memory limit of all processes of one job; 0: no limit.", ge=0)
    cpus: float = setting(
        0.0, "CPU limit of all processes of one job, in cores, if the job sets none; 0: no limit.", ge=0
    )
    memory_interval: float = setting(1.0, "How often memory is measured if there is no cgroup.", gt=0)
    read_seconds: float = setting(
        8.0, "Maximum time to parse one page, robots.txt, sitemap or PDF; then it fails.", gt=0
    )
    read_memory: int = setting(1 << 30, "How much memory the reading of one input may take; 0: no limit.", ge=0)
    stall_after: float = setting(900.0, "A job without progress for this long is killed; 0: never.", ge=0)
    nice: int = setting(
        5, "The nice value of runners: a higher number gives other programs more CPU time.", ge=0, le=19
    )
    open_files: int = setting(65536, "Maximum number of open files of a runner, if the system allows it.", ge=256)
    cgroups: bool = setting(True, "Put each job in its own cgroup v2 if the system allows it.")
    fork_server: bool = setting(True, "Start runners from a fork server instead of a new interpreter.")
    runner_environment: tuple[str, ...] = setting(
        (), "More environment variables that jobs get, comma separated; a plug-in may need some."
    )
    log_level: LogLevel = setting(
        "",
        "The log level on stderr: debug, info, warning or error. Default: depends on the command.",
        choices=get_args(LogLevel),
    )
    log_format: LogFormat = setting(
        "text",
        "The format of log lines on stderr and in the log files of jobs: text, or json with one object per line.",
        choices=get_args(LogFormat),
    )
    log_bytes: int = setting(
        10 << 20, "Maximum size of the log file of a job before it is rotated; one older file is kept.", ge=4096
    )
    log_lines: int = setting(10_000, "Maximum number of log lines of one attempt in the database.", ge=10)

    keep_jobs_days: float = setting(0.0, "Delete jobs and their results this many days after they end; 0: keep.", ge=0)
    keep_jobs_count: int = setting(0, "Keep at most this many ended jobs; 0: all.", ge=0)
    keep_logs_days: float = setting(30.0, "Delete the log lines of jobs this many days after they end; 0: keep.", ge=0)
    cleaner_interval: float = setting(300.0, "How often the cleaner runs.", gt=0)
    disk_free_min: int = setting(256 << 20, "Start no job if less disk space than this is free.", ge=0)

    test_kinds: bool = setting(False, "Allow the diagnostic kind that hangs, leaks and crashes on purpose.")

    @property
    def database(self) -> str:
        return self.database_url or f"sqlite:///{(self.data / 'silkline.db').absolute()}"

    def secrets(self) -> tuple[str, ...]:
        """Secret values: the token, and URLs that may contain a password."""
        addresses = (self.database_url, self.renderer_url)
        return (self.api_token, *(address for address in addresses if "@" in address or "?" in address))

    def secret_texts(self) -> tuple[str, ...]:
        """Texts that no log line may contain: `secrets`, and the passwords in them."""
        passwords = [password for address in self.secrets()[1:] for password in passwords_in(address)]
        found = (*self.secrets(), os.environ.get("PGPASSWORD", ""), *passwords)
        return tuple(text for text in found if len(text) >= SHORTEST_SECRET)

    def to_json(self) -> bytes:
        """For `settings_from_json`, in another process. It contains secrets."""
        return json.dumps(asdict(self), default=str).encode()

    @property
    def logs(self) -> Path:
        return self.data / "logs"

    def for_kinds(self) -> KindSettings:
        """The settings that the code of a kind may use."""
        return KindSettings(
            data=str(self.data.absolute()),
            renderer_url=self.renderer_url,
            bluesky_url=self.bluesky_url,
            youtube_url=self.youtube_url,
            fetchers=self.fetchers,
            parsers=self.parsers,
            max_concurrent_http=self.max_concurrent_http,
            max_concurrent_chrome=self.max_concurrent_chrome,
            read_seconds=self.read_seconds,
            read_memory=self.read_memory,
            cpus=self.cpus,
            contact=self.contact,
        )


SETTINGS: Final = settings_of(Settings)


class SettingsError(UsageError):
    """Settings that cannot be used: for each name what is wrong with it; the empty name stands for all together."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"setting {name}: {what}" if name else what for name, what in problems.items()))
        self.problems = problems


def settings_with(values: Mapping[str, Any]) -> Settings:
    """The settings with these values, each of them checked. Others have their defaults."""
    found: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for name, value in values.items():
        if name not in SETTINGS:
            problems[name] = UNKNOWN
            continue
        try:
            found[name] = SETTINGS[name].read(value)
        except ValueError as error:
            problems[name] = str(error)
    if problems:
        raise SettingsError(problems)
    settings = Settings(**found)
    if not settings.heartbeat_interval < settings.fence_after < settings.stale_after:
        ages = (settings.heartbeat_interval, settings.fence_after, settings.stale_after)
        raise SettingsError(
            {
                "": "heartbeat_interval < fence_after < stale_after must be true: a worker must kill its runners "
                f"before another worker may claim their jobs ({', '.join(f'{age:g}' for age in ages)})"
            }
        )
    return settings


def settings_from_json(text: bytes) -> Settings:
    """The settings that another process of ours sent, as `Settings.to_json` wrote them."""
    return settings_with(json.loads(text))


class Loaded:
    """Settings with the source of each value. `variables`: the environment variables of those from the environment."""

    def __init__(self, settings: Settings, sources: Mapping[str, str], variables: Mapping[str, str]) -> None:
        self.settings = settings
        self.sources = sources
        self.variables = variables

    @property
    def database_is_borrowed(self) -> bool:
        """Whether the database URL comes from DATABASE_URL, which may have been set for another program."""
        from_environment = self.sources["database_url"] == "environment"
        return from_environment and self.variables["database_url"] == ALIASES["database_url"]


def load(
    overrides: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
    directory: Path | None = None,
) -> Loaded:
    """Read the settings. A wrong name or value raises a `UsageError` with its source and what is allowed."""
    values: dict[str, Any] = {}
    sources = dict.fromkeys(SETTINGS, "default")
    file = (directory or Path()) / FILE
    variables = _variables(environ)
    for source, found in (
        (str(file), _from_file(file)),
        ("environment", {name: _value_of(environ, variable) for name, variable in variables.items()}),
        ("command line", {name: value for name, value in (overrides or {}).items() if value is not None}),
    ):
        values.update(found)
        sources.update(dict.fromkeys(found, source))
    try:
        return Loaded(settings_with({"data": home_of(environ), **values}), sources, variables)
    except SettingsError as error:
        raise UsageError("; ".join(_problem(*each, sources, variables) for each in error.problems.items())) from error


def _from_file(file: Path) -> dict[str, Any]:
    try:
        # Opened once: the name may lead to another file between a check and a second opening.
        with open(file, "rb", opener=_without_waiting) as opened:
            found = os.fstat(opened.fileno())
            _refuse_foreign(file, found)
            content = opened.read() if stat.S_ISREG(found.st_mode) else _read_pipe(file, opened.fileno())
            return tomllib.loads(content.decode())
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from error


def _without_waiting(name: str, flags: int) -> int:
    """Open a file, also if it is a pipe of another user to which nobody writes."""
    return os.open(name, flags | os.O_NONBLOCK)


def _read_pipe(file: Path, descriptor: int) -> bytes:
    """What the writer of a pipe says until it closes it, for so long that it cannot stop a server for ever."""
    until = time.monotonic() + PIPE_SECONDS
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    found: list[bytes] = []
    while poll.poll(1000 * max(0.0, until - time.monotonic())):
        part = os.read(descriptor, 1 << 16)
        if not part:
            return b"".join(found)
        found.append(part)
    raise UsageError(f"{file} cannot be read: it is a pipe, and its writer did not end within {PIPE_SECONDS:g} seconds")


def _refuse_foreign(file: Path, found: os.stat_result) -> None:
    """Refuse a file that another user can write: the settings decide what Silkline runs and who may use it."""
    if found.st_uid not in (os.geteuid(), 0):
        raise UsageError(f"{file} belongs to another user, so it is not used: remove it, or work in another folder")
    if found.st_mode & 0o002:
        raise UsageError(f"{file} can be written by every user, so it is not used: chmod o-w {file}")


def _variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The settings from the environment, each with its variable. An empty variable counts as not set."""
    found = {}
    for name in SETTINGS:
        ours = PREFIX + name.upper()
        if environ.get(ours) and environ.get(ours + IN_FILE):
            raise UsageError(f"{ours} and {ours}{IN_FILE} are both set: remove one of them")
        for variable in (ours, ours + IN_FILE, ALIASES.get(name, "")):
            if environ.get(variable):
                found[name] = variable
                break
    return found


def _value_of(environ: Mapping[str, str], variable: str) -> str:
    """The value of a variable, or the content of the file that it names, without the white space around it."""
    value = environ[variable]
    if not (variable.startswith(PREFIX) and variable.endswith(IN_FILE)):
        return value
    try:
        content = Path(value).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the file of {variable} cannot be read: {error}") from error
    if not content:
        raise UsageError(f"the file of {variable} is empty: {value}")
    return content


def _problem(name: str, what: str, sources: Mapping[str, str], variables: Mapping[str, str]) -> str:
    if what == UNKNOWN:
        return f"unknown setting {name!r} in {sources.get(name, FILE)}; `silkline config` lists them all"
    source = sources.get(name, "default")
    if source == "environment":
        source = f"environment, {variables[name]}"
    return f"setting {name} ({source}): {what}" if name else what
