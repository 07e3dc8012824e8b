"""The Crawlee crawler of benchmarks/render.py: two pages at a time, storage in memory, no retries, no logs."""

import asyncio
import json
import logging
import sys
from pathlib import Path
from typing import TextIO

from crawlee import ConcurrencySettings
from crawlee.crawlers import PlaywrightCrawler, PlaywrightCrawlingContext
from crawlee.storage_clients import MemoryStorageClient


async def main(urls: list[str], out: TextIO, program: str) -> None:
    crawler = PlaywrightCrawler(
        storage_client=MemoryStorageClient(),
        concurrency_settings=ConcurrencySettings(min_concurrency=2, desired_concurrency=2, max_concurrency=2),
        max_request_retries=0,
        configure_logging=False,
        headless=True,
        browser_type="chromium",
        browser_launch_options={"executable_path": program, "args": ["--no-sandbox"]},
    )

    @crawler.router.default_handler
    async def handle(context: PlaywrightCrawlingContext) -> None:
        await context.page.wait_for_load_state("networkidle")
        out.write(json.dumps({"url": context.request.url, "html": await context.page.content()}) + "\n")

    await crawler.run(urls)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    with Path(sys.argv[2]).open("w") as file:
        asyncio.run(main(Path(sys.argv[1]).read_text().split(), file, sys.argv[3]))
