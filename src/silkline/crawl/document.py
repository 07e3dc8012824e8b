"""What a body says, of whatever kind it is: the JSON that a result stores, or the reason why there is no text in it.

Pure, and the same for every kind that fetches single pages; HTML is read as the crawl engine reads it.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from silkline.crawl.outcomes import as_seen
from silkline.crawl.plan import Plan
from silkline.crawl.reading import Body, PageReader
from silkline.model.fetched import Fetched
from silkline.parse.pdf import parse_pdf
from silkline.parse.plain import plain_data
from silkline.parse.sniff import sniff

NOT_TEXT: Final = "not_text"
MAX_CONTENT: Final = 2_000_000
_encode = msgspec.json.Encoder().encode
_WHAT: Final = {"image": "an image", "other": "a file of another kind"}


class Document(NamedTuple):
    """`data` is JSON; with a `reason` there is none."""

    data: str = "{}"
    reason: str | None = None
    detail: str = ""
    needs_scripts: bool = False


class DocumentReader:
    """Reads bodies by what the plan wants of them."""

    def __init__(self, plan: Plan) -> None:
        # Who asks for one page by name wants that page: `noindex` is for those who build an index.
        self._pages = PageReader(msgspec.structs.replace(plan, ignore_robots=True))
        self._content = plan.content

    def read(self, fetched: Fetched) -> Document:
        kind = sniff(fetched.body, fetched.content_type, fetched.charset)
        if kind == "html":
            base, body, charset = as_seen(fetched.url, fetched)
            reading = self._pages.reading_of(Body(0, fetched.url, body, fetched.content_type, charset, "", base=base))
            return Document(reading.data, reading.reason, reading.detail or "", reading.needs_scripts)
        if kind in ("text", "xml", "feed"):
            return self._text(fetched)
        if kind == "pdf":
            return self._pdf(fetched)
        declared = f", {fetched.content_type}" if fetched.content_type else ""
        return Document(reason=NOT_TEXT, detail=_WHAT[kind] + declared)

    def _text(self, fetched: Fetched) -> Document:
        data = plain_data(fetched.body, fetched.charset, fetched.content_type, self._content, MAX_CONTENT)
        return Document(_encode(data).decode())

    def _pdf(self, fetched: Fetched) -> Document:
        pdf = parse_pdf(fetched.body, max_content=MAX_CONTENT)
        if not pdf.markdown:
            return Document(reason=NOT_TEXT, detail=f"a PDF without text ({pdf.problem or 'perhaps only images'})")
        more: dict[str, Any] = {"pages": pdf.pages}
        if pdf.truncated:
            more["truncated"] = ["content"]
        return self._document(pdf.title, pdf.markdown, pdf.markdown, more)

    def _document(self, title: str, text: str, markdown: str, more: dict[str, Any]) -> Document:
        data: dict[str, Any] = {"title": title, **more}
        shown = text if self._content == "text" else markdown
        if self._content != "none":
            data["text" if self._content == "text" else "markdown"] = shown[:MAX_CONTENT]
            if len(shown) > MAX_CONTENT:
                data["truncated"] = ["content"]
        return Document(_encode(data).decode())
