"""The whole hostile set, many at once, in a process of its own: memory must stay flat."""

import subprocess
import sys
from pathlib import Path

from tests.crawl.hostile_server import HostileServer

GROWTH_MB = 100

CRAWL = """
import asyncio, re, sys
sys.path.insert(0, sys.argv[1])
import uvloop
from tests.crawl.hostile_client import LOOPBACK, Names
from silkline.fetch.client import HttpClient
from silkline.fetch.settings import FetchSettings
from silkline.model.fetched import Request

BASE = sys.argv[2]
BOMBS = ["gzip", "br", "zstd", "deflate", "gzip,gzip", "zstd,br,gzip"]
PATHS = [f"/bomb/{way}?mib=30" for way in BOMBS] + [
    "/endless", "/endless?chunked=1", "/promised/99999999999", "/huge-headers/many", "/huge-headers/one",
    "/members", "/reset/during", "/truncated/length", "/garbage", "/informational/endless", "/large/9000000", "/ok",
]

def peak():
    # Not getrusage: a child inherits the peak of the process that started it.
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) // 1024

async def main():
    client = HttpClient(FetchSettings(total_timeout=60), LOOPBACK, Names({}))
    limit = asyncio.Semaphore(48)
    async def one(path):
        async with limit:
            answer = await client.fetch(Request(BASE + path))
            return answer.ok, answer.reason  # a crawl hands the body on, so it is not kept here either
    for path in ("/ok", "/encoded/gzip", "/encoded/br", "/encoded/zstd"):
        assert (await one(path))[0]
    before = peak()
    answers = await asyncio.gather(*(one(path) for _ in range(4) for path in PATHS))
    client.close()
    assert all(ok or reason for ok, reason in answers)
    print(peak() - before, len(answers))

uvloop.run(main())
"""


def test_memory_stays_flat_under_everything_at_once() -> None:
    with HostileServer() as server:
        done = subprocess.run(
            [sys.executable, "-c", CRAWL, str(Path(__file__).parents[2]), server.url("")],
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    growth, answers = map(int, done.stdout.split())
    assert answers == 72
    assert growth < GROWTH_MB, f"grew by {growth} MB"
