"""Crawls the sample site with one click. This process serves the site on loopback from then on."""

from __future__ import annotations

import threading

from silkline.model.job import NewJob
from silkline.sample.server import SampleServer

SAMPLE = "sample_site"  # in the metadata of the job: crawled again, it is the sample of the server of that time


class FirstCrawl:
    """Makes the job. It may use a private address, that of the sample site, because no user input is in it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server: SampleServer | None = None

    def job(self) -> NewJob:
        with self._lock:
            if self._server is None:
                self._server = SampleServer().__enter__()
        start = self._server.url
        address = start.removeprefix("http://").rstrip("/")
        # Not at full speed, so that users can watch the progress.
        payload = {"url": start, "limit": 200, "speed": "fast", "delay": 0.15, "allow_private": [address]}
        return NewJob(kind="site", payload=payload, request_url=start, metadata={SAMPLE: True})
