"""The first crawl, in one click: of the bundled sample site, which this process serves on loopback from then on."""

from __future__ import annotations

import threading

from silkline.model.job import NewJob
from silkline.sample.server import SampleServer

SAMPLE = "sample_site"  # in the metadata of the job: crawled again, it is the sample of the server of that time


class FirstCrawl:
    """Nothing of this job comes from outside, so it may name an address of this machine: that of the sample alone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server: SampleServer | None = None

    def job(self) -> NewJob:
        with self._lock:
            if self._server is None:
                self._server = SampleServer().__enter__()
        start = self._server.url
        address = start.removeprefix("http://").rstrip("/")
        # Not at full speed: there should be something to see.
        payload = {"url": start, "limit": 200, "speed": "fast", "delay": 0.15, "allow_private": [address]}
        return NewJob(kind="site", payload=payload, request_url=start, metadata={SAMPLE: True})
