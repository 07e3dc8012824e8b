"""The Crawlee crawler of benchmarks/crawl.py: its fastest crawler, storage in memory, no retries, no logs."""

import asyncio
import json
import logging
import re
import sys
from pathlib import Path
from typing import TextIO
from urllib.parse import urljoin

from crawlee import ConcurrencySettings, Request
from crawlee.crawlers import HttpCrawler, HttpCrawlingContext
from crawlee.storage_clients import MemoryStorageClient

LINK = re.compile(rb'<a href="([^"]+)"')
TITLE = re.compile(rb"<title>([^<]*)</title>")


async def main(start: str, wanted: int, out: TextIO) -> None:
    crawler = HttpCrawler(
        storage_client=MemoryStorageClient(),
        concurrency_settings=ConcurrencySettings(min_concurrency=50, desired_concurrency=50, max_concurrency=50),
        max_requests_per_crawl=wanted,
        max_request_retries=0,
        configure_logging=False,
    )

    @crawler.router.default_handler
    async def handle(context: HttpCrawlingContext) -> None:
        body = await context.http_response.read()
        title = TITLE.search(body)
        out.write(json.dumps({"url": context.request.url, "title": title and title[1].decode()}) + "\n")
        links = [urljoin(context.request.url, href.decode()) for href in LINK.findall(body)]
        await context.add_requests([Request.from_url(link) for link in links])

    await crawler.run([start])


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    with Path(sys.argv[3]).open("w") as file:
        asyncio.run(main(sys.argv[1], int(sys.argv[2]), file))
