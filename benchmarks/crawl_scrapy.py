"""The Scrapy crawler of benchmarks/crawl.py, tuned: no delays, no cookies, no retries, no logs, breadth first."""

import json
import sys
from pathlib import Path

import scrapy
from scrapy.crawler import CrawlerProcess


class Spider(scrapy.Spider):
    name = "benchmark"

    def __init__(self, start: str, wanted: int, out: str) -> None:
        super().__init__()
        self.start_urls = [start]
        self.left = wanted
        self.out = Path(out).open("w")

    def parse(self, response):
        if self.left <= 0:
            return
        self.left -= 1
        self.out.write(json.dumps({"url": response.url, "title": response.css("title::text").get()}) + "\n")
        for href in response.css("a::attr(href)").getall():
            yield response.follow(href, self.parse)

    def closed(self, reason):
        self.out.close()


if __name__ == "__main__":
    start, wanted, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    process = CrawlerProcess(
        {
            "ROBOTSTXT_OBEY": False,
            "DOWNLOAD_DELAY": 0,
            "CONCURRENT_REQUESTS": 100,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 100,
            "COOKIES_ENABLED": False,
            "RETRY_ENABLED": False,
            "TELNETCONSOLE_ENABLED": False,
            "LOG_ENABLED": False,
            "CLOSESPIDER_PAGECOUNT": wanted,
            "DEPTH_PRIORITY": 1,
            "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
            "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
        }
    )
    process.crawl(Spider, start=start, wanted=wanted, out=out)
    process.start()
