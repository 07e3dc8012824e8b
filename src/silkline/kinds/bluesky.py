"""The kind `bluesky`: a profile with its posts, a thread, or a search, through the public XRPC endpoints.

Each page of answers is one checkpoint, together with the cursor for the next page. So a job continues exactly where it
stopped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
import uvloop

from silkline.errors import Permanent
from silkline.kinds import posts
from silkline.kinds.json_api import Endpoint, Interrupted
from silkline.model.fetched import Fetched
from silkline.model.job import End
from silkline.model.kind import Context
from silkline.model.ledger import DONE, FAILED, Checkpoint, NewResult, NewUrl
from silkline.model.spec import BlueskySpec
from silkline.model.url import canonical, host_of, url_key
from silkline.store import urls
from silkline.store.page_cache import HIDDEN_KEYS

PAGE: Final = 100
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
_encode = msgspec.json.Encoder().encode


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
        self._seen: set[int] = set()
        self._next_id = 1
        self._stored = 0
        self._most = self._spec.limit

    async def run(self) -> None:
        database, job = self._context.progress.database, self._context.progress.job
        counts = urls.counts(database, job.id)
        for rows in urls.keys(database, job.id):
            self._seen.update(key for key, _ in rows)
        self._next_id = urls.last_id(database, job.id) + 1
        self._stored = counts.done
        if counts.live.get("finished"):
            return
        cursor = counts.live.get("cursor")
        actor, post, search = subject(self._spec)
        if search is not None:
            await self._pages("app.bsky.feed.searchPosts", {"q": search}, "posts", cursor)
        elif post is not None:
            await self._thread(actor, post)
        else:
            self._most += 1  # the profile is stored in addition to the posts
            if self._next_id == 1:
                found = await self._ask("app.bsky.actor.getProfile", {"actor": actor})
                self._record([(posts.profile_url(found.get("handle") or actor), posts.profile(found))], cursor=None)
            asked = {"actor": actor, "filter": "posts_with_replies"}
            await self._pages("app.bsky.feed.getAuthorFeed", asked, "feed", cursor)
        self._context.log.info("%d results from Bluesky", self._stored)

    async def _pages(self, method: str, asked: dict[str, Any], name: str, cursor: str | None) -> None:
        while self._stored < self._most:
            wanted = min(PAGE, self._most - self._stored)
            answer = await self._ask(method, {**asked, "limit": wanted, "cursor": cursor})
            before, cursor = cursor, answer.get("cursor")
            found = [each.get("post", each) for each in answer.get(name) or [] if not each.get("reason")]
            over = not cursor or cursor == before or not answer.get(name)
            self._record(((posts.post_url(each), posts.post(each)) for each in found), cursor=cursor, finished=over)
            if over:
                return

    async def _thread(self, actor: str, name: str) -> None:
        did = (
            actor
            if actor.startswith("did:")
            else (await self._ask("app.bsky.actor.getProfile", {"actor": actor}))["did"]
        )
        uri = f"at://{did}/app.bsky.feed.post/{name}"
        answer = await self._ask("app.bsky.feed.getPostThread", {"uri": uri, "depth": 100, "parentHeight": 100})
        root = answer.get("thread") or {}
        if "post" not in root:
            raise Permanent(f"{uri}: {_ADVICE['BlockedByActor' if root.get('blocked') else 'NotFound']}")
        found = list(posts.thread(root))
        there = ((posts.post_url(each["post"]), posts.post(each["post"])) for each in found if "post" in each)
        self._record(there, cursor=None, missing=[each for each in found if "post" not in each], finished=True)

    async def _ask(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        if self._context.control.order:
            raise Interrupted
        fetched, answer = await self._endpoint.json(f"xrpc/{method}", parameters)
        self._context.progress.report()
        if fetched.ok and isinstance(answer, dict):
            return answer
        raise Permanent(complaint(fetched, answer, parameters))

    def _record(
        self,
        found: Iterable[tuple[str, dict[str, Any]]],
        *,
        cursor: str | None,
        missing: Iterable[dict[str, Any]] = (),
        finished: bool = False,
    ) -> None:
        """One checkpoint: the new items among these, and where to continue."""
        rows: list[NewUrl] = []
        results: list[NewResult] = []
        for url, data in found:
            row = self._row(url, DONE, None)
            if row is not None and self._stored + len(results) < self._most:
                rows.append(row)
                results.append(_result(row, data))
        for each in missing:
            reason = BLOCKED if each.get("blocked") else REMOVED
            row = self._row(posts.post_url(each), FAILED, reason)
            if row is not None:
                rows.append(row)
        rows = [row._replace(id=id) for id, row in enumerate(rows, self._next_id)]
        ids = {row.url_key: row.id for row in rows}
        results = [result._replace(url_id=ids[result.url_id]) for result in results]
        live = {"cursor": cursor, "finished": finished}
        self._context.progress.record(Checkpoint(found=rows, results=results, live=live))
        self._next_id += len(rows)
        self._stored += len(results)

    def _row(self, url: str, state: str, reason: str | None) -> NewUrl | None:
        address = canonical(url) or url
        key = url_key(address)
        if key in self._seen:
            return None
        self._seen.add(key)
        return NewUrl(0, key, address, host_of(address), 0, state, reason, None, None, "bluesky")


def _result(row: NewUrl, data: dict[str, Any]) -> NewResult:
    """It has its key as id until the rows have their ids. A post is not a page: the cache must not find it."""
    key, final_key = HIDDEN_KEYS
    return NewResult(row.url_key, row.url, key, row.url, final_key, _encode(data).decode(), True, "{}")


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
    told = answer if isinstance(answer, dict) else {}
    error, message = str(told.get("error") or ""), str(told.get("message") or "")
    about = parameters.get("actor") or parameters.get("uri") or parameters.get("q") or ""
    if error in _ADVICE:
        return f"{about}: {_ADVICE[error]}"
    if fetched.status in (401, 403):
        return f"{about}: {_ADVICE['AuthMissing']}"
    if "not found" in message.lower() or "could not find" in message.lower():
        return f"{about}: there is no such account; check the spelling of its handle"
    return f"Bluesky refuses {about!r}: {message or error or fetched.reason or fetched.status}"
