"""The side of Crawlee in benchmarks/crawl.py: its fastest crawler, storage in memory, no retries, no logs."""

import asyncio
import json
import logging
import re
import sys

from crawlee import ConcurrencySettings, Request
from crawlee.crawlers import HttpCrawler, HttpCrawlingContext
from crawlee.storage_clients import MemoryStorageClient

LINK = re.compile(rb'<a href="([^"]+)"')
TITLE = re.compile(rb"<title>([^<]*)</title>")


async def main(start: str, wanted: int, out: str) -> None:
    crawler = HttpCrawler(
        storage_client=MemoryStorageClient(),
        concurrency_settings=ConcurrencySettings(min_concurrency=50, desired_concurrency=50, max_concurrency=50),
        max_requests_per_crawl=wanted,
        max_request_retries=0,
        configure_logging=False,
    )
    with open(out, "w") as file:

        @crawler.router.default_handler
        async def handle(context: HttpCrawlingContext) -> None:
            body = await context.http_response.read()
            title = TITLE.search(body)
            file.write(json.dumps({"url": context.request.url, "title": title and title[1].decode()}) + "\n")
            await context.add_requests([Request.from_url(href.decode()) for href in LINK.findall(body)])

        await crawler.run([start])


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
