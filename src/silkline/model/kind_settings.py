"""The settings that reach the code of a kind. A separate module, because the configuration imports it at each start."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class KindSettings:
    """The settings for the code of a kind. They come with the job: the code reads no settings itself.

    Secrets of the service, such as the database URL and the API token, are not included.
    """

    data: str
    """The data directory, as an absolute path."""
    renderer_url: str = ""
    bluesky_url: str = ""
    youtube_url: str = ""
    fetchers: int = 0
    parsers: int = 0
    max_concurrent_http: int = 300
    max_concurrent_chrome: int = 2
    contact: str = ""
    read_seconds: float = 8.0
    read_memory: int = 1 << 30
