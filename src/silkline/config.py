"""The settings: command line > environment > silkline.toml > default, with the source of each value.

This does not use pydantic-settings: its import takes 264 ms, more than a whole `jobs ls`, and it cannot tell the
source of a value. `silkline config` prints the table.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from silkline.errors import UsageError
from silkline.model.duration import seconds_of
from silkline.model.kind import KindSettings
from silkline.model.secret_url import passwords_in

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
LogLevel = Literal["", "debug", "info", "warning", "error"]
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


def _names(value: Any) -> Any:
    return [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_names)]


class Settings(BaseModel):
    """Every setting. Units are seconds and bytes unless the name says otherwise."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    data: Path = Field(
        default_factory=lambda: home_of(os.environ),
        description="Directory of the embedded database, logs and exports. Default: silkline in XDG_DATA_HOME, else "
        "~/.local/share/silkline.",
    )
    database_url: str = Field(
        "", description="sqlite:///PATH or postgresql://…; if empty, silkline.db in the data directory."
    )
    renderer_url: str = Field(
        "",
        description="Connect to this running browser instead of starting one: ws://…, or http://HOST:PORT.",
    )
    api_token: str = Field(
        "", description="Bearer token of the API; required if the API listens on an address other than loopback."
    )
    api_hosts: Names = Field((), description="More host names of the API, comma separated: crawler.example.com:443.")
    api_allow_private: bool = Field(False, description="Allow jobs from the API to use private addresses and proxies.")
    api_private_ranges: Names = Field(
        (),
        description="With api_allow_private: allow only these private addresses (CIDR[:PORT], comma separated), "
        "no proxies.",
    )
    api_body_limit: int = Field(16 << 20, ge=1024, description="The largest request body that the API accepts.")
    api_connections: int = Field(1_000, ge=10, description="Maximum number of connections to the API.")
    api_connections_each: int = Field(
        250, ge=5, description="Maximum number of connections to the API from one address."
    )
    api_streams: int = Field(500, ge=1, description="Maximum number of event streams and waiting requests.")
    api_streams_each: int = Field(
        100, ge=1, description="Maximum number of event streams and waiting requests of one caller."
    )
    api_stream_check: float = Field(
        10.0, gt=0, description="How often an event stream checks that its token or session is still valid."
    )
    api_downloads: int = Field(32, ge=1, description="Maximum number of downloads: exports, and lists as JSON lines.")
    api_downloads_each: int = Field(8, ge=1, description="Maximum number of downloads of one caller.")
    api_head_timeout: float = Field(10.0, gt=0, description="Maximum time to receive the head of a request to the API.")
    api_body_timeout: float = Field(
        30.0,
        gt=0,
        description="Maximum time to receive a request body; a body that arrives at 16 KiB/s or more may take longer.",
    )
    api_answer_timeout: float = Field(
        60.0, gt=0, description="Close a connection whose client has not read its response for this long."
    )
    api_probe_interval: float = Field(5.0, gt=0, description="How often `silkline serve` checks that its API responds.")
    api_hung_after: float = Field(60.0, gt=0, description="Restart the API if it has not responded for this long.")
    metrics_port: int = Field(
        0, ge=0, le=65_535, description="A worker serves /metrics, /healthz and /readyz at this port; 0: at none."
    )
    metrics_host: str = Field(
        "127.0.0.1", description="The address for metrics_port. Beyond this machine, /metrics wants the api_token."
    )
    fetchers: int = Field(
        0,
        ge=0,
        le=256,
        description="Default number of fetcher processes of a crawl; 0: one per core, but not more than hosts.",
    )
    parsers: int = Field(0, ge=0, le=256, description="Default number of parser processes of a crawl.")
    max_concurrent_http: int = Field(
        300, ge=1, description="Default number of concurrent requests of one job, shared by its fetchers."
    )
    max_concurrent_chrome: int = Field(
        2, ge=0, description="Maximum number of pages in browsers at the same time on this machine; 0: no rendering."
    )
    bluesky_url: str = Field("https://public.api.bsky.app", description="The server for jobs of the kind `bluesky`.")
    youtube_url: str = Field("https://www.youtube.com", description="The server for jobs of the kind `youtube`.")
    crawl4ai: bool = Field(
        False,
        description="Allow the kind `crawl4ai`. Its browser ignores Silkline's address checks: use it only on a "
        "machine that cannot reach a private network.",
    )
    contact: str = Field("", description="A mail address or URL for site owners, sent in the User-Agent.")

    slots: int = Field(2, ge=0, description="How many jobs one worker runs at the same time.")
    poll_interval: float = Field(
        1.0, gt=0, description="How often a worker looks for jobs when no notification arrives."
    )
    wish_interval: float = Field(0.5, gt=0, description="How often a worker checks for pause, stop and cancel.")
    balance_interval: float = Field(
        10.0, gt=0, description="How often a worker checks whether another one has fewer shards of crawls."
    )
    heartbeat_interval: float = Field(10.0, gt=0, description="How often a worker renews its leases.")
    fence_after: float = Field(
        90.0, gt=0, description="A worker that could not renew its leases for this long kills its runners."
    )
    stale_after: float = Field(
        120.0,
        gt=0,
        description="A running job without a heartbeat for this long is considered dead and goes back to the queue.",
    )
    watchdog_interval: float = Field(60.0, gt=0, description="How often a worker looks for dead jobs.")
    grace_period: float = Field(
        30.0, ge=0, description="After SIGTERM, running jobs have this long to save a checkpoint."
    )
    kill_after: float = Field(
        10.0, ge=0, description="After pause, stop or cancel, a runner has this long to end before it is killed."
    )
    max_retries: int = Field(3, ge=0, description="Default number of retries, and of crashes, that a job is allowed.")
    backoff_base: float = Field(5.0, ge=0, description="Wait before the first retry; it doubles with each retry.")
    backoff_cap: float = Field(900.0, ge=0, description="The longest wait before a retry.")

    page_deadline: float = Field(3600.0, ge=0, description="Time limit of a job that is not a site crawl; 0: none.")
    site_deadline: float = Field(0.0, ge=0, description="Time limit of a site crawl; 0: none.")
    memory_limit: int = Field(4 << 30, ge=0, description="Memory limit of all processes of one job; 0: no limit.")
    cpus: float = Field(
        0.0, ge=0, description="CPU limit of all processes of one job, in cores, if the job sets none; 0: no limit."
    )
    memory_interval: float = Field(1.0, gt=0, description="How often memory is measured if there is no cgroup.")
    read_seconds: float = Field(
        8.0, gt=0, description="Maximum time to parse one page, robots.txt, sitemap or PDF; then it fails."
    )
    read_memory: int = Field(
        1 << 30, ge=0, description="Memory limit of the isolated process that parses one risky input; 0: no limit."
    )
    stall_after: float = Field(900.0, ge=0, description="A job without progress for this long is killed; 0: never.")
    nice: int = Field(
        5, ge=0, le=19, description="The nice value of runners: a higher number gives other programs more CPU time."
    )
    open_files: int = Field(
        65536, ge=256, description="Maximum number of open files of a runner, if the system allows it."
    )
    cgroups: bool = Field(True, description="Put each job in its own cgroup v2 if the system allows it.")
    fork_server: bool = Field(True, description="Start runners from a fork server instead of a new interpreter.")
    runner_environment: Names = Field(
        (), description="More environment variables that jobs get, comma separated; a plug-in may need some."
    )
    log_level: LogLevel = Field(
        "", description="The log level on stderr: debug, info, warning or error. Default: depends on the command."
    )
    log_format: LogFormat = Field(
        "text",
        description="The format of log lines on stderr and in the log files of jobs: text, or json with one object "
        "per line.",
    )
    log_bytes: int = Field(
        10 << 20,
        ge=4096,
        description="Maximum size of the log file of a job before it is rotated; one older file is kept.",
    )
    log_lines: int = Field(10_000, ge=10, description="Maximum number of log lines of one attempt in the database.")

    keep_jobs_days: float = Field(
        0.0, ge=0, description="Delete jobs and their results this many days after they end; 0: keep."
    )
    keep_jobs_count: int = Field(0, ge=0, description="Keep at most this many ended jobs; 0: all.")
    keep_logs_days: float = Field(
        30.0, ge=0, description="Delete the log lines of jobs this many days after they end; 0: keep."
    )
    cleaner_interval: float = Field(300.0, gt=0, description="How often the cleaner runs.")
    disk_free_min: int = Field(256 << 20, ge=0, description="Start no job if less disk space than this is free.")

    test_kinds: bool = Field(False, description="Allow the diagnostic kind that hangs, leaks and crashes on purpose.")

    @field_validator("*", mode="before")
    @classmethod
    def _with_units(cls, value: Any, info: ValidationInfo) -> Any:
        """Every setting that is a duration accepts a text with units, such as 90s or 10m."""
        name = info.field_name or ""
        if not isinstance(value, str) or cls.model_fields[name].annotation is not float:
            return value
        if name.endswith("_days"):  # here a number without a unit means days
            return seconds_of(value) / 86_400 if value.strip()[-1:].isalpha() else value
        return seconds_of(value)

    @model_validator(mode="after")
    def _fence_in_time(self) -> Settings:
        if not self.heartbeat_interval < self.fence_after < self.stale_after:
            raise ValueError(
                "heartbeat_interval < fence_after < stale_after must be true: a worker must kill its runners "
                "before another "
                f"worker may claim their jobs ({self.heartbeat_interval:g}, {self.fence_after:g}, "
                f"{self.stale_after:g})"
            )
        return self

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
    sources = dict.fromkeys(Settings.model_fields, "default")
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
        return Loaded(Settings.model_validate({"data": home_of(environ), **values}), sources, variables)
    except ValidationError as error:
        raise UsageError("; ".join(_problem(detail, sources) for detail in error.errors())) from error


def _from_file(file: Path) -> dict[str, Any]:
    try:
        _refuse_foreign(file)
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from error


def _refuse_foreign(file: Path) -> None:
    """Refuse a file that another user can write: the settings decide what Silkline runs and who may use it."""
    found = file.stat()
    if found.st_uid not in (os.geteuid(), 0):
        raise UsageError(f"{file} belongs to another user, so it is not used: remove it, or work in another folder")
    if found.st_mode & 0o002:
        raise UsageError(f"{file} can be written by every user, so it is not used: chmod o-w {file}")


def _variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The settings from the environment, each with its variable. An empty variable counts as not set."""
    found = {}
    for name in Settings.model_fields:
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


def _problem(detail: Any, sources: Mapping[str, str]) -> str:
    name = str(detail["loc"][0]) if detail["loc"] else "settings"
    if detail["type"] == "extra_forbidden":
        return f"unknown setting {name!r} in {sources.get(name, FILE)}; `silkline config` lists them all"
    message = detail["msg"].removeprefix("Value error, ")
    return f"setting {name} ({sources.get(name, 'default')}): {message}" if detail["loc"] else message
