"""A small site of our own to crawl first: made up, always there, with a few of the troubles that real sites have."""

from __future__ import annotations

import asyncio
from html import escape

from fastapi import APIRouter, Response
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse

from silkline.api.problems import Problem
from silkline.model.job import NewJob

PLACES = ("Harbour", "Lighthouse", "Market", "Mill", "Orchard", "Quarry", "Station", "Weaver's Row")
NOTES = 6
ROBOTS = (
    "User-agent: *\nAllow: /sample/\nDisallow: /sample/private/\nDisallow: /\n\nSitemap: {origin}/sample/sitemap.xml\n"
)
SLOW = 1.5


def first_crawl(port: int) -> NewJob:
    """The crawl of this site. Nothing of it comes from outside, so it may name our own address."""
    start = f"http://127.0.0.1:{port}/sample/"
    return NewJob(
        worker="site",
        payload={
            "url": start,
            "scope": "prefix",
            "limit": 200,
            "delay": 0.1,
            "allow_private": [f"127.0.0.1/32:{port}"],
        },
        request_url=start,
    )


class SampleRoutes:
    def __init__(self, port: int) -> None:
        self._origin = f"http://127.0.0.1:{port}"
        self.router = APIRouter(include_in_schema=False)
        self.router.add_api_route("/robots.txt", self.robots, methods=["GET"])
        self.router.add_api_route("/sample/", self.home, methods=["GET"])
        self.router.add_api_route("/sample/sitemap.xml", self.sitemap, methods=["GET"])
        self.router.add_api_route("/sample/old", self.moved, methods=["GET"])
        self.router.add_api_route("/sample/{place}/", self.place, methods=["GET"])
        self.router.add_api_route("/sample/{place}/{note}", self.note, methods=["GET"])

    async def robots(self) -> Response:
        return PlainTextResponse(ROBOTS.format(origin=self._origin))

    async def sitemap(self) -> Response:
        places = "".join(f"<url><loc>{self._origin}/sample/{slug(place)}/</loc></url>" for place in PLACES)
        text = f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{places}</urlset>'
        return Response(text, media_type="application/xml")

    async def home(self) -> Response:
        links = [(f"/sample/{slug(place)}/", place) for place in PLACES]
        links += [("/sample/old", "The old guide"), ("/sample/private/ledger", "The harbour master's ledger")]
        return page("A walk through Threadhaven", "Threadhaven is a small town that exists only here.", links)

    async def moved(self) -> Response:
        return RedirectResponse("/sample/harbour/", 301)

    async def place(self, place: str) -> Response:
        name = _known(place)
        links = [(f"/sample/{place}/{number}", f"Note {number} on {name}") for number in range(1, NOTES + 1)]
        links.append((f"/sample/{place}/{NOTES + 1}", "A note that was lost"))
        return page(name, f"What there is to say about {name}, in {NOTES} notes.", links)

    async def note(self, place: str, note: str) -> Response:
        name = _known(place)
        if not note.isdecimal() or not note.isascii() or not 1 <= int(note[:3]) <= NOTES:
            raise Problem("not-found", "this note was lost")
        if int(note) == NOTES:
            await asyncio.sleep(SLOW)  # the last note of each place takes its time
        text = f"Note {note}. " + f"{name} was quiet today; somebody mended a net and counted the threads twice. " * 4
        neighbour = PLACES[(PLACES.index(name) + int(note)) % len(PLACES)]
        return page(f"{name}, note {note}", text, [("/sample/", "Home"), (f"/sample/{slug(neighbour)}/", neighbour)])


def page(title: str, text: str, links: list[tuple[str, str]]) -> Response:
    items = "".join(f'<li><a href="{escape(target)}">{escape(label)}</a></li>' for target, label in links)
    body = f"<h1>{escape(title)}</h1><p>{escape(text)}</p><ul>{items}</ul>"
    return HTMLResponse(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title></head>'
        f"<body><main>{body}</main></body></html>"
    )


def slug(place: str) -> str:
    return place.lower().replace("'", "").replace(" ", "-")


def _known(text: str) -> str:
    for place in PLACES:
        if slug(place) == text:
            return place
    raise Problem("not-found", "there is no such place in Threadhaven")
