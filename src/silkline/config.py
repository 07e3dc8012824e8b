"""The settings: command line > environment > silkline.toml > default, and where each value came from.

Written here instead of with pydantic-settings because that costs 264 ms to import, more than a whole `jobs ls`, and
cannot say where a value came from. `silkline config` prints the table.
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

PREFIX = "SILKLINE_"
FILE = "silkline.toml"
# Names that other tools already use, taken when the SILKLINE_ one is not set.
ALIASES = {
    "database_url": "DATABASE_URL",
    "renderer_url": "RENDERER_URL",
    "max_concurrent_http": "MAX_CONCURRENT_CURL",
    "max_concurrent_chrome": "MAX_CONCURRENT_CHROME",
}
SECRET = frozenset({"api_token"})
LogLevel = Literal["", "debug", "info", "warning", "error"]


def home_of(environ: Mapping[str, str]) -> Path:
    """The data directory of a user who has named none: the same one, whatever the current directory is."""
    base = Path(environ.get("XDG_DATA_HOME") or "")
    if base.is_absolute():  # the XDG standard says that a relative path must be ignored
        return base / "silkline"
    try:
        home = Path(environ.get("HOME") or Path.home())
    except RuntimeError as error:
        raise UsageError("this user has no home directory: name a data directory with --data") from error
    return home.absolute() / ".local" / "share" / "silkline"


def _names(value: Any) -> Any:
    return [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_names)]


class Settings(BaseModel):
    """Every setting, in seconds and bytes unless the name says otherwise."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    data: Path = Field(
        default_factory=lambda: home_of(os.environ),
        description="Directory of the embedded database, logs and exports. Default: silkline in XDG_DATA_HOME, else "
        "~/.local/share/silkline.",
    )
    database_url: str = Field(
        "", description="sqlite:///PATH or postgresql://…; empty: silkline.db in the data directory."
    )
    renderer_url: str = Field(
        "",
        description="A browser to connect to instead of starting one: ws://…, or http://HOST:PORT where it listens.",
    )
    api_token: str = Field("", description="Bearer token; required to bind to anything but loopback.")
    api_hosts: Names = Field(
        (), description="Further names, comma separated, under which the API is reached: crawler.example.com:443."
    )
    api_allow_private: bool = Field(
        False, description="Let jobs that come through the API ask for private addresses and proxies."
    )
    api_private_ranges: Names = Field(
        (),
        description="With api_allow_private: only these private addresses (CIDR[:PORT], comma separated), no proxies.",
    )
    api_body_limit: int = Field(16 << 20, ge=1024, description="The largest body the API takes.")
    api_connections: int = Field(1_000, ge=10, description="Connections to the API in all.")
    api_connections_each: int = Field(250, ge=5, description="Connections to the API from one address.")
    api_streams: int = Field(500, ge=1, description="Event streams and waiting requests in all.")
    api_streams_each: int = Field(100, ge=1, description="Event streams and waiting requests of one caller.")
    api_head_timeout: float = Field(10.0, gt=0, description="Time that the head of a request to the API may take.")
    api_body_timeout: float = Field(
        30.0, gt=0, description="Time that a body may take; one that comes at 16 KiB a second or more may take longer."
    )
    api_answer_timeout: float = Field(60.0, gt=0, description="Time for which a caller may leave an answer unread.")
    api_probe_interval: float = Field(
        5.0, gt=0, description="How often `silkline serve` asks its API whether it answers."
    )
    api_hung_after: float = Field(
        60.0, gt=0, description="An API that has not answered for this long is started again."
    )
    fetchers: int = Field(
        0,
        ge=0,
        le=256,
        description="Fetcher processes of a crawl that does not say how many; 0: one for each core, but not more than "
        "hosts.",
    )
    parsers: int = Field(0, ge=0, le=256, description="Parser processes of a crawl that does not say how many.")
    max_concurrent_http: int = Field(
        300, ge=1, description="Requests in flight of one job, shared by its fetchers, where the job does not say."
    )
    max_concurrent_chrome: int = Field(
        2, ge=0, description="Pages in browsers at once, on this machine; 0: none is rendered."
    )
    bluesky_url: str = Field("https://public.api.bsky.app", description="Where jobs of the kind `bluesky` ask.")
    youtube_url: str = Field("https://www.youtube.com", description="Where jobs of the kind `youtube` ask.")
    crawl4ai: bool = Field(
        False,
        description="Offer the kind `crawl4ai`, whose browser goes its own way to the web: only where no private "
        "network can be reached from here.",
    )
    contact: str = Field("", description="An address or URL that site owners can write to; sent in the User-Agent.")

    slots: int = Field(2, ge=0, description="Jobs one supervisor runs at once.")
    poll_interval: float = Field(1.0, gt=0, description="How often a supervisor looks for work, were no bell to ring.")
    wish_interval: float = Field(0.5, gt=0, description="How often a supervisor looks for pause, stop and cancel.")
    heartbeat_interval: float = Field(10.0, gt=0, description="How often a supervisor renews its leases.")
    fence_after: float = Field(
        90.0, gt=0, description="Without a renewal for this long a supervisor kills its children."
    )
    stale_after: float = Field(120.0, gt=0, description="A running job silent for this long is taken for dead.")
    watchdog_interval: float = Field(60.0, gt=0, description="How often a supervisor looks for dead jobs.")
    grace_period: float = Field(30.0, ge=0, description="Time that running jobs get to checkpoint at SIGTERM.")
    kill_after: float = Field(
        10.0, ge=0, description="Time a runner gets to obey pause, stop or cancel before it is killed."
    )
    max_retries: int = Field(3, ge=0, description="Retries, and crashes, that a job is allowed by default.")
    backoff_base: float = Field(5.0, ge=0, description="Wait before the first retry; doubles with each.")
    backoff_cap: float = Field(900.0, ge=0, description="The longest wait before a retry.")

    page_deadline: float = Field(
        3600.0, ge=0, description="Wall-clock limit of a job that is not a site crawl; 0: none."
    )
    site_deadline: float = Field(0.0, ge=0, description="Wall-clock limit of a site crawl; 0: none.")
    memory_limit: int = Field(4 << 30, ge=0, description="Memory of one job's whole process tree; 0: no limit.")
    memory_interval: float = Field(1.0, gt=0, description="How often memory is measured where no cgroup does it.")
    read_seconds: float = Field(
        8.0, gt=0, description="How long one page, robots.txt, sitemap or PDF may be read; then it is given up."
    )
    read_memory: int = Field(
        1 << 30, ge=0, description="Memory of the process that reads one risky input; 0: no limit."
    )
    stall_after: float = Field(900.0, ge=0, description="A job without progress for this long is killed; 0: never.")
    nice: int = Field(5, ge=0, le=19, description="How far runners step back behind other programs.")
    open_files: int = Field(65536, ge=256, description="Open files a runner may have, as far as the system allows.")
    cgroups: bool = Field(True, description="Put each job in a cgroup v2 of its own where that is allowed.")
    fork_server: bool = Field(True, description="Start runners from a fork server instead of a fresh interpreter.")
    runner_environment: Names = Field(
        (), description="Further environment variables, comma separated, that jobs get; a plug-in may need some."
    )
    log_level: LogLevel = Field(
        "", description="How much is written to stderr: debug, info, warning or error. Default: by the command."
    )
    log_bytes: int = Field(
        10 << 20, ge=4096, description="Size of a job's log file before it is rotated; one older is kept."
    )
    log_lines: int = Field(10_000, ge=10, description="Log lines of one attempt kept in the database.")

    keep_jobs_days: float = Field(0.0, ge=0, description="Delete finished jobs and their results after this; 0: keep.")
    keep_jobs_count: int = Field(0, ge=0, description="Keep at most so many finished jobs; 0: all.")
    keep_logs_days: float = Field(30.0, ge=0, description="Delete log lines of finished jobs after this; 0: keep.")
    cleaner_interval: float = Field(300.0, gt=0, description="How often the cleaner runs.")
    disk_free_min: int = Field(256 << 20, ge=0, description="With less free space than this no job is started.")

    test_kinds: bool = Field(False, description="Offer the diagnostic kind that hangs, leaks and crashes on purpose.")

    @field_validator("*", mode="before")
    @classmethod
    def _with_units(cls, value: Any, info: ValidationInfo) -> Any:
        """Every setting that is a length of time takes a text with units, such as 90s or 10m."""
        name = info.field_name or ""
        if not isinstance(value, str) or cls.model_fields[name].annotation is not float:
            return value
        if name.endswith("_days"):  # there a number alone means days
            return seconds_of(value) / 86_400 if value.strip()[-1:].isalpha() else value
        return seconds_of(value)

    @model_validator(mode="after")
    def _fence_in_time(self) -> Settings:
        if not self.heartbeat_interval < self.fence_after < self.stale_after:
            raise ValueError(
                "heartbeat_interval < fence_after < stale_after must hold: a supervisor has to kill its children "
                f"before another one may take their jobs ({self.heartbeat_interval:g}, {self.fence_after:g}, "
                f"{self.stale_after:g})"
            )
        return self

    @property
    def database(self) -> str:
        return self.database_url or f"sqlite:///{(self.data / 'silkline.db').absolute()}"

    def secrets(self) -> tuple[str, ...]:
        """Values that nobody else may see: the token, and addresses that may hold a password."""
        addresses = (self.database_url, self.renderer_url)
        return (self.api_token, *(address for address in addresses if "@" in address or "?" in address))

    @property
    def logs(self) -> Path:
        return self.data / "logs"

    def for_kinds(self) -> KindSettings:
        """What a kind's code may know."""
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
            contact=self.contact,
        )


class Loaded:
    """Settings together with where each value came from; `variables` names the variable where that was one."""

    def __init__(self, settings: Settings, sources: Mapping[str, str], variables: Mapping[str, str]) -> None:
        self.settings = settings
        self.sources = sources
        self.variables = variables

    @property
    def database_is_borrowed(self) -> bool:
        """Whether the database was named by DATABASE_URL only, which may have been set for another program."""
        from_environment = self.sources["database_url"] == "environment"
        return from_environment and self.variables["database_url"] == ALIASES["database_url"]


def load(
    overrides: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
    directory: Path | None = None,
) -> Loaded:
    """Read the settings. A wrong name or value is a `UsageError` that says which, where, and what is allowed."""
    values: dict[str, Any] = {}
    sources = dict.fromkeys(Settings.model_fields, "default")
    file = (directory or Path()) / FILE
    variables = _variables(environ)
    for source, found in (
        (str(file), _from_file(file)),
        ("environment", {name: environ[variable] for name, variable in variables.items()}),
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
    """The settings decide what runs and who may do what: a file that another user can write must not."""
    found = file.stat()
    if found.st_uid not in (os.geteuid(), 0):
        raise UsageError(f"{file} belongs to another user, so it is not used: remove it, or work in another folder")
    if found.st_mode & 0o002:
        raise UsageError(f"{file} can be written by everybody, so it is not used: chmod o-w {file}")


def _variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The settings that the environment holds, each with its variable. An empty variable counts as not set."""
    found = {}
    for name in Settings.model_fields:
        for variable in (PREFIX + name.upper(), ALIASES.get(name, "")):
            if environ.get(variable):
                found[name] = variable
                break
    return found


def _problem(detail: Any, sources: Mapping[str, str]) -> str:
    name = str(detail["loc"][0]) if detail["loc"] else "settings"
    if detail["type"] == "extra_forbidden":
        return f"unknown setting {name!r} in {sources.get(name, FILE)}; `silkline config` lists them all"
    message = detail["msg"].removeprefix("Value error, ")
    return f"setting {name} ({sources.get(name, 'default')}): {message}" if detail["loc"] else message
