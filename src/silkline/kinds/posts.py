"""Posts and profiles of Bluesky, as the results that are stored. Pure: XRPC answers in, values out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

SITE = "https://bsky.app"


def profile_url(actor: str) -> str:
    return f"{SITE}/profile/{quote(actor, safe=':.')}"


def post_url(post: dict[str, Any]) -> str:
    """The address of a post for people. For authors without a valid handle it has their id."""
    author = post.get("author") or {}
    _, _, name = str(post.get("uri", "")).rpartition("/")
    handle = author.get("handle")
    actor = (
        handle
        if handle and handle != "handle.invalid"
        else author.get("did") or str(post.get("uri", ""))[5:].split("/")[0]
    )
    return f"{profile_url(str(actor))}/post/{quote(name, safe='')}"


def profile(found: dict[str, Any]) -> dict[str, Any]:
    """A profile in the form that is stored."""
    name = found.get("displayName") or found.get("handle") or ""
    about = found.get("description") or ""
    return {
        "kind": "profile",
        "title": name,
        "markdown": f"# {name}\n\n{about}".strip(),
        "did": found.get("did"),
        "handle": found.get("handle"),
        "description": about,
        "followers": found.get("followersCount"),
        "follows": found.get("followsCount"),
        "posts": found.get("postsCount"),
        "avatar": found.get("avatar"),
        "created_at": found.get("createdAt"),
    }


def post(found: dict[str, Any]) -> dict[str, Any]:
    """A post in the form that is stored."""
    record, author = found.get("record") or {}, found.get("author") or {}
    text = str(record.get("text") or "")
    name = author.get("displayName") or author.get("handle") or ""
    parent = ((record.get("reply") or {}).get("parent") or {}).get("uri")
    data = {
        "kind": "post",
        "title": f"{name}: {text.splitlines()[0][:80]}" if text.strip() else name,
        "markdown": linked(text, record.get("facets") or []),
        "text": text,
        "uri": found.get("uri"),
        "author": {key: author.get(key) for key in ("did", "handle", "displayName")},
        "created_at": record.get("createdAt"),
        "languages": record.get("langs") or [],
        "reply_to": parent,
        "likes": found.get("likeCount"),
        "reposts": found.get("repostCount"),
        "replies": found.get("replyCount"),
        "quotes": found.get("quoteCount"),
        **embedded(found.get("embed") or {}),
    }
    return {key: value for key, value in data.items() if value is not None}


def linked(text: str, facets: list[Any]) -> str:
    """The text with its links, mentions and tags as Markdown. Facets count in bytes of UTF-8."""
    raw = text.encode()
    parts, at = [], 0
    for start, end, target in sorted(_spans(facets)):
        if at <= start < end <= len(raw):
            label = raw[start:end].decode(errors="replace")
            parts += [raw[at:start].decode(errors="replace"), f"[{label}]({target})"]
            at = end
    return "".join([*parts, raw[at:].decode(errors="replace")])


def _spans(facets: list[Any]) -> Iterator[tuple[int, int, str]]:
    for facet in facets:
        index = facet.get("index") or {}
        start, end = index.get("byteStart"), index.get("byteEnd")
        for feature in facet.get("features") or []:
            target = _target(feature)
            if target and isinstance(start, int) and isinstance(end, int):
                yield start, end, target


def _target(feature: dict[str, Any]) -> str | None:
    uri = feature.get("uri")
    if uri:
        return str(uri) if str(uri).startswith(("http://", "https://")) else None
    if feature.get("did"):
        return profile_url(str(feature["did"]))
    if feature.get("tag"):
        return f"{SITE}/hashtag/{quote(str(feature['tag']), safe='')}"
    return None


def embedded(embed: dict[str, Any]) -> dict[str, Any]:
    """The attachments of a post: images with their descriptions, a card for a link, a quoted post."""
    media = embed.get("media") or {}
    record = embed.get("record") or {}
    quoted = record.get("uri") or (record.get("record") or {}).get("uri")
    found: dict[str, Any] = {}
    images = [
        {"url": image.get("fullsize"), "alt": image.get("alt") or ""}
        for image in (embed.get("images") or media.get("images") or [])
    ]
    card = embed.get("external") or media.get("external") or {}
    if images:
        found["images"] = images
    if card:
        found["external"] = {key: card.get(key) for key in ("uri", "title", "description")}
    if quoted:
        found["quoted"] = quoted
    return found


def thread(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The posts of a thread, oldest parent first, each reply after its parent. No recursion: some threads are deep."""
    above: list[dict[str, Any]] = []
    parent = node.get("parent")
    while isinstance(parent, dict):
        above.append(parent)
        parent = parent.get("parent")
    yield from reversed(above)
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        replies = current.get("replies")
        if isinstance(replies, list):
            waiting += [reply for reply in reversed(replies) if isinstance(reply, dict)]
