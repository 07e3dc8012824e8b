"""Renders one page and waits for it: `python render_one.py URL PLACES`. Started by tests that kill it."""

import asyncio
import sys
from pathlib import Path

import uvloop

from silkline.crawl.render_turns import RenderTurns
from silkline.fetch.client import HttpClient
from silkline.fetch.dns import SystemResolver
from silkline.fetch.guard import Guard, parse_exemption
from silkline.fetch.render import Renderer
from silkline.fetch.settings import FetchSettings, RenderLimits
from silkline.model.fetched import Request


async def main(url: str, places: str) -> None:
    client = HttpClient(FetchSettings(), Guard([parse_exemption("127.0.0.0/8")]), SystemResolver())
    limits, turns = RenderLimits(seconds=300), RenderTurns()
    renderer = Renderer(client, places=Path(places), count=1, turns=turns, fallback=False, limits=limits)
    fetched = await client.fetch(Request(url))
    await asyncio.shield(renderer.render(fetched))


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
