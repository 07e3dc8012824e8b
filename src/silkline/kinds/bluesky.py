"""The kind `bluesky`: a profile with its posts, a thread, or a search, through the public XRPC endpoints.

Each page of answers is one checkpoint, together with the cursor for the next page. So a job continues exactly where it
stopped. A post that cannot be read fails alone (foreign_items.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
import uvloop

from silkline.errors import Permanent, Temporary
from silkline.kinds import posts
from silkline.kinds.foreign_items import LONGEST_DETAIL, Unreadable, result_json, understood
from silkline.kinds.json_api import Endpoint, Interrupted
from silkline.model.fetched import BAD_RESPONSE, Fetched
from silkline.model.job import End
from silkline.model.kind import Context
from silkline.model.ledger import DONE, FAILED, Checkpoint, NewResult, NewUrl
from silkline.model.reasons import meaning, unreachable
from silkline.model.spec import BlueskySpec
from silkline.model.url import canonical, host_of, url_key
from silkline.store import urls
from silkline.store.page_cache import HIDDEN_KEYS

PAGE: Final = 100
WITHOUT_NEW: Final = 50
"""Pages in a row without a new post, after which a list ends. An account may have repeated thousands of posts."""
REMOVED: Final = "removed"
BLOCKED: Final = "blocked"
_PROFILE: Final = re.compile(r"/profile/([^/]+)(?:/post/([^/]+))?/?")
_ADVICE: Final = {
    "AccountTakedown": "the account was taken down by Bluesky; its posts cannot be fetched",
    "AccountDeactivated": "the account was deactivated by its owner; try again when it is back",
    "BlockedActor": "the account is blocked for this client; use another server (setting bluesky_url)",
    "BlockedByActor": "the account has blocked this client; use another server (setting bluesky_url)",
    "NotFound": "the post was removed, or never existed",
    "AuthMissing": "this needs a login; set bluesky_url to a server that answers without one",
    "AuthenticationRequired": "this needs a login; set bluesky_url to a server that answers without one",
}
Answer = TypeVar("Answer")


class Page(msgspec.Struct):
    """A page of a feed (`feed`) or of a search (`posts`)."""

    cursor: str | None = None
    feed: list[Any] | None = None
    posts: list[Any] | None = None


class Thread(msgspec.Struct):
    thread: dict[str, Any] = {}


class Profile(msgspec.Struct):
    did: str


class Item(NamedTuple):
    """A post or profile in the form that is stored. `data` is JSON text; with a reason, there is nothing to store."""

    url: str
    data: str
    reason: str | None = None


Read = Callable[[Any], Item | None]


def run(context: Context[BlueskySpec]) -> End | None:
    return uvloop.run(_work(context))


async def _work(context: Context[BlueskySpec]) -> End | None:
    endpoint = Endpoint("Bluesky", context.settings.bluesky_url, context.control, contact=context.settings.contact)
    job = BlueskyJob(context, endpoint)
    try:
        await job.run()
        return None
    except Interrupted:
        return context.control.order
    finally:
        endpoint.close()


class BlueskyJob:
    """One attempt: from the subject of the spec to the results."""

    def __init__(self, context: Context[BlueskySpec], endpoint: Endpoint) -> None:
        self._context = context
        self._spec = context.spec
        self._endpoint = endpoint
        self._seen: set[str] = set()
        self._next_id = 1
        self._stored = 0
        self._unreadable = 0
        self._most = self._spec.limit

    async def run(self) -> None:
        database, job = self._context.progress.database, self._context.progress.job
        counts = urls.counts(database, job.id)
        for rows in urls.every(database, job.id):
            self._seen.update(url for url, _, _ in rows)
        self._next_id = urls.last_id(database, job.id) + 1
        self._stored = counts.done
        if counts.live.get("finished"):
            return
        cursor = counts.live.get("cursor")
        actor, post, search = subject(self._spec)
        if search is not None:
            await self._pages("app.bsky.feed.searchPosts", {"q": search}, cursor)
        elif post is not None:
            await self._thread(actor, post)
        else:
            self._most += 1  # the profile is stored in addition to the posts
            if self._next_id == 1:
                found = await self._ask("app.bsky.actor.getProfile", {"actor": actor}, dict[str, Any])
                self._record([found], partial(_profile, actor), cursor=None)
            asked = {"actor": actor, "filter": "posts_with_replies"}
            await self._pages("app.bsky.feed.getAuthorFeed", asked, cursor)
        self._context.log.info("%d results from Bluesky", self._stored)

    async def _pages(self, method: str, asked: dict[str, Any], cursor: str | None) -> None:
        """Ends after the last page. A server that goes round in a circle, or invents cursors, ends it too."""
        asked_for, known, without_new = {cursor}, self._next_id, 0
        while (left := self._most - self._stored - self._unreadable) > 0:
            answer = await self._ask(method, {**asked, "limit": min(PAGE, left), "cursor": cursor}, Page)
            cursor, found = answer.cursor, answer.feed or answer.posts or []
            over = not cursor or cursor in asked_for or not found or without_new >= WITHOUT_NEW
            self._record(found, _listed, cursor=cursor, finished=over)
            if over:
                break
            asked_for.add(cursor)
            without_new = without_new + 1 if self._next_id == known else 0
            known = self._next_id
        if without_new >= WITHOUT_NEW:
            self._context.log.warning("Bluesky sent %d pages without a new post: the list ends here", without_new)

    async def _thread(self, actor: str, name: str) -> None:
        if not actor.startswith("did:"):
            actor = (await self._ask("app.bsky.actor.getProfile", {"actor": actor}, Profile)).did
        uri = f"at://{actor}/app.bsky.feed.post/{name}"
        asked = {"uri": uri, "depth": 100, "parentHeight": 100}
        root = (await self._ask("app.bsky.feed.getPostThread", asked, Thread)).thread
        if "post" not in root:
            raise Permanent(f"{uri}: {_ADVICE['BlockedByActor' if root.get('blocked') else 'NotFound']}")
        self._record(posts.thread(root), _in_thread, cursor=None, finished=True)

    async def _ask(self, method: str, parameters: dict[str, Any], shape: type[Answer]) -> Answer:
        if self._context.control.order:
            raise Interrupted
        fetched, answer = await self._endpoint.json(f"xrpc/{method}", parameters)
        self._context.progress.report()
        if not fetched.ok:
            raise Permanent(complaint(fetched, answer, parameters))
        try:
            return msgspec.convert(answer, shape)
        except msgspec.ValidationError as error:
            raise Temporary(f"Bluesky answered {method} in another form: {error}"[:LONGEST_DETAIL]) from error

    def _record(self, found: Iterable[Any], read: Read, *, cursor: str | None, finished: bool = False) -> None:
        """One checkpoint: the new items among these, and where to continue."""
        rows: list[NewUrl] = []
        results: list[NewResult] = []
        for each in found:
            item, why = self._item(each, read, self._next_id + len(rows))
            if item is None or (item.reason is None and self._stored + len(results) >= self._most):
                continue
            row = self._row(item, self._next_id + len(rows), why)
            if row is not None:
                rows.append(row)
                results += [] if item.reason else [_result(row, item.data)]
                self._unreadable += item.reason == BAD_RESPONSE
        live = {"cursor": cursor, "finished": finished}
        self._context.progress.record(Checkpoint(found=rows, results=results, live=live))
        self._next_id += len(rows)
        self._stored += len(results)

    def _item(self, found: Any, read: Read, id: int) -> tuple[Item | None, str | None]:
        """An item of an answer, and why it cannot be read. Even then it has a URL for the ledger."""
        try:
            return understood(partial(read, found)), None
        except Unreadable as error:
            why = str(error)
        try:
            url = understood(partial(_post_address, found))
        except Unreadable:
            url = f"{posts.SITE}/?unreadable={id}"
        self._context.log.warning("an item of Bluesky cannot be read: %s (%s)", url, why)
        return Item(url, "{}", BAD_RESPONSE), why

    def _row(self, item: Item, id: int, detail: str | None) -> NewUrl | None:
        if item.url in self._seen:
            return None
        self._seen.add(item.url)
        state = FAILED if item.reason else DONE
        return NewUrl(
            id, url_key(item.url), item.url, host_of(item.url), 0, state, item.reason, detail, None, "bluesky"
        )


def _profile(actor: str, found: Any) -> Item:
    return Item(_address(posts.profile_url(found.get("handle") or actor)), result_json(posts.profile(found)))


def _post(found: Any) -> Item:
    return Item(_address(posts.post_url(found)), result_json(posts.post(found)))


def _listed(found: Any) -> Item | None:
    """An item of a feed or a search. None: somebody else's post that was only repeated."""
    return None if found.get("reason") else _post(found.get("post", found))


def _in_thread(found: Any) -> Item:
    if "post" in found:
        return _post(found["post"])
    return Item(_address(posts.post_url(found)), "{}", BLOCKED if found.get("blocked") else REMOVED)


def _post_address(found: Any) -> str:
    return _address(posts.post_url(found.get("post", found)))


def _address(url: str) -> str:
    address = canonical(url)
    if address is None:
        raise ValueError("it has no valid address")
    return address


def _result(row: NewUrl, data: str) -> NewResult:
    """A post is not a page: the cache must not find it."""
    key, final_key = HIDDEN_KEYS
    return NewResult(row.id, row.url, key, row.url, final_key, data, True, "{}")


def subject(spec: BlueskySpec) -> tuple[str, str | None, str | None]:
    """Actor, name of a post, and search words, depending on what the spec has."""
    if spec.search is not None:
        return "", None, spec.search
    if spec.actor is not None:
        return spec.actor.removeprefix("@"), None, None
    parts = urlsplit(spec.url or "")
    if parts.path == "/search" and (words := parse_qs(parts.query).get("q")):
        return "", None, words[0]
    found = _PROFILE.fullmatch(unquote(parts.path))
    if found is None:
        raise Permanent(f"{spec.url} is no profile, post or search of Bluesky, such as {posts.SITE}/profile/bsky.app")
    return found[1], found[2], None


def complaint(fetched: Fetched, answer: Any, parameters: dict[str, Any]) -> str:
    """What Bluesky refused, with advice on what to do."""
    if not fetched.status:
        return unreachable("Bluesky", fetched.reason, fetched.detail)
    told = answer if isinstance(answer, dict) else {}
    error, message = str(told.get("error") or ""), str(told.get("message") or "")
    about = parameters.get("actor") or parameters.get("uri") or parameters.get("q") or ""
    if error in _ADVICE:
        return f"{about}: {_ADVICE[error]}"
    if fetched.status in (401, 403):
        return f"{about}: {_ADVICE['AuthMissing']}"
    if "not found" in message.lower() or "could not find" in message.lower():
        return f"{about}: there is no such account; check the spelling of its handle"
    return f"Bluesky refuses {about!r}: {message or error or meaning(fetched.reason, {}) or fetched.status}"
