"""Prepares the images of a document for Markdown and HTML: their URLs, and what their alternative texts repeat."""

import re
from typing import Final

from turbohtml import Document, Element

_LAZY: Final = ("data-src", "data-original", "data-lazy-src", "data-lazy", "data-srcset", "srcset")
_PICTURES: Final = (".jpg", ".jpeg", ".png", ".gif", ".webp", ".avif", ".svg")
_TINY: Final = ("0", "1")
_LONGEST_ALT: Final = 2_000
# The name of a file, as a camera or a program makes it, says nothing: `IMG_2067.jpeg`, `hero-banner-2x.png`.
_FILE_NAME: Final = re.compile(r"\S+\.(?:jpe?g|png|gif|webp|avif|svg|bmp|tiff?|heic)", re.IGNORECASE)


def tidy_linked_images(root: Element | Document) -> None:
    """Removes images that link to other pages: previews and advertisements.

    A link to a larger form of the image is replaced by that form.
    """
    for anchor in root.find_all("a"):
        images = anchor.find_all("img")
        if not images:
            continue
        address = anchor.attr("href") or "#"
        path = address.partition("?")[0].lower()
        if path.endswith(_PICTURES):
            if len(images) == 1 and not anchor.text.strip():
                images[0].attrs["src"] = address
                anchor.unwrap()
        elif not path.startswith("#"):
            for image in images:
                image.extract()


def find_sources(root: Element | Document) -> None:
    """Sets the URL of images that load lazily, and removes images without a URL or of one pixel."""
    for image in root.find_all("img"):
        source = image.attr("src") or ""
        if not source or source.startswith("data:"):
            late = next((value for name in _LAZY if (value := image.attr(name))), "")
            source = late.strip().partition(",")[0].partition(" ")[0]
            image.attrs["src"] = source
        if not source or source.startswith("data:") or image.attr("width") in _TINY or image.attr("height") in _TINY:
            image.extract()


def drop_repetitions(root: Element | Document) -> None:
    """Removes what says nothing new: an image that is shown again, and an alternative text that repeats another text.

    Shops show a picture several times, and name it like the product beside it. For a reader without eyes for pictures,
    all of that is the same line again and again.
    """
    images = root.find_all("img")
    if not images:
        return
    shown: set[str] = set()
    said = set(root.stripped_strings)
    for image in images:
        source, alt = image.attr("src") or "", image.attr("alt")
        if source in shown:
            image.extract()
            continue
        shown.add(source)
        if alt is None:
            continue
        text = " ".join(alt[:_LONGEST_ALT].split())
        if text in said or _FILE_NAME.fullmatch(text):
            image.attrs["alt"] = ""
        said.add(text)
