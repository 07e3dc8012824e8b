"""The crawl4ai crawler of benchmarks/render.py: two pages at a time, no cache, no logs."""

import asyncio
import json
import sys
from pathlib import Path

from crawl4ai import AsyncWebCrawler, BrowserConfig, CacheMode, CrawlerRunConfig
from playwright.async_api import BrowserType


def use_program(program: str) -> None:
    """crawl4ai has no option for the browser program."""
    launch = BrowserType.launch

    async def with_program(self: BrowserType, **options: object) -> object:
        return await launch(self, **{**options, "executable_path": program, "channel": None})  # type: ignore[arg-type]

    BrowserType.launch = with_program  # type: ignore[method-assign,assignment]


async def main(urls: list[str], program: str) -> str:
    use_program(program)
    browser = BrowserConfig(headless=True, verbose=False, extra_args=["--no-sandbox"])
    run = CrawlerRunConfig(cache_mode=CacheMode.BYPASS, wait_until="networkidle", semaphore_count=2, verbose=False)
    async with AsyncWebCrawler(config=browser) as crawler:
        found = await crawler.arun_many(urls, config=run)
    return "".join(json.dumps({"url": each.url, "html": each.html}) + "\n" for each in found)


if __name__ == "__main__":
    pages = asyncio.run(main(Path(sys.argv[1]).read_text().split(), sys.argv[3]))
    Path(sys.argv[2]).write_text(pages)
