"""The content of a page as Markdown or text, with absolute links."""

from turbohtml import Document, Markdown

from silkline.model.page import Wanted


def render(document: Document, base: str, wanted: Wanted) -> tuple[str, str, bool]:
    """Markdown, text, and whether either was cut. The document is changed on the way."""
    if wanted.content == "none":
        return "", "", False
    document.resolve_links(base)
    main = document if wanted.content == "full" else document.main_content() or document
    if wanted.content == "text":
        text = main.to_text()
        return "", text[: wanted.max_content], len(text) > wanted.max_content
    markdown = main.to_markdown(Markdown())
    return markdown[: wanted.max_content], "", len(markdown) > wanted.max_content
