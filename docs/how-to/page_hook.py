"""A page hook that counts the words of each page, follows its feeds, and refuses pages for printing."""

from silkline.model.hook import Additions, HookedPage


def look(page: HookedPage) -> Additions:
    if "print=1" in page.url:
        return Additions(refusal="a page for printing")
    feeds = [link.attr("href") or "" for link in page.document.select("link[type='application/rss+xml']")]
    words = len(page.document.select_one("body").text.split())
    server = page.headers.get("server", "")
    return Additions(data={"body_words": words, "server": server}, links=feeds)
