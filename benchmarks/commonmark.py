"""Measures how faithful the Markdown is: the examples of CommonMark, from HTML to Markdown and back to HTML.

    python benchmarks/commonmark.py --spec spec.json

The file is the list of examples of the specification, as https://spec.commonmark.org offers it (JSON). Each example is
HTML that some Markdown gives. Silkline turns the HTML into Markdown, markdown-it-py turns that into HTML, and both must
be the same document: the same elements, addresses and words. White space between blocks does not count, nor whether the
entries of a list are paragraphs. Raw HTML is left out, since the Markdown of a page should have none. With --show the differences are printed.
"""

import argparse
import json
import re
import sys
from collections import Counter
from pathlib import Path

from markdown_it import MarkdownIt
from turbohtml import Comment, Element, Node, Text, parse

from silkline.model.page import Wanted
from silkline.model.url import canonical
from silkline.parse.html import parse_page

URL = "https://page.example/folder/page"
RAW = ("HTML blocks", "Raw HTML")
SPACE = re.compile(r"\s+")
BLOCKS = {"p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "hr", "body", "br"}
ADDRESSES = {"href", "src"}


def markdown_of(html: str) -> str:
    return parse_page(html.encode(), URL, Wanted(content="full"), charset="utf-8").markdown


def shape(html: str) -> str:
    """The document in one form, so that two documents can be compared."""
    body = parse(f"<!doctype html><body>{html}", positions=False).find("body")
    out: list[str] = []
    _write(body, out, kept=False)
    text = "".join(out)
    names = "|".join(BLOCKS)
    text = re.sub(rf"\s*(</?(?:{names})(?: [^>]*)?>)\s*", r"\1", text) if "<pre" not in text else _around(text, names)
    return text.strip()


def _around(text: str, names: str) -> str:
    """White space around blocks, but not in code."""
    parts = re.split(r"(<pre>.*?</pre>)", text, flags=re.DOTALL)
    return "".join(
        part if part.startswith("<pre>") else re.sub(rf"\s*(</?(?:{names})(?: [^>]*)?>)\s*", r"\1", part).strip()
        for part in parts
    )


def _write(node: Node, out: list[str], *, kept: bool) -> None:
    for child in node.children:
        if isinstance(child, Text):
            out.append(_escaped(child.data if kept else SPACE.sub(" ", child.data)))
        elif isinstance(child, Element):
            if child.tag == "p" and isinstance(node, Element) and node.tag == "li":
                _write(child, out, kept=kept)
                continue
            out.append(f"<{child.tag}{_attributes(child)}>")
            _write(child, out, kept=kept or child.tag == "pre")
            out.append(f"</{child.tag}>")
        elif not isinstance(child, Comment):
            out.append(f"<{type(child).__name__}>")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _attributes(element: Element) -> str:
    """Addresses are made absolute, because Silkline makes them so; what leads nowhere has no address."""
    kept = []
    for name in sorted(element.attrs):
        value = str(element.attr(name))
        if name in ADDRESSES:
            value = canonical(value, base=URL) or value
        kept.append(f' {name}="{_escaped(value)}"')
    return "".join(kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spec", metavar="FILE", type=Path, required=True, help="the examples, as JSON")
    parser.add_argument("--show", action="store_true", help="print what differs")
    asked = parser.parse_args()
    if not asked.spec.is_file():
        sys.exit(f"commonmark: there is no file {asked.spec}")
    back = MarkdownIt("commonmark")
    total: Counter[str] = Counter()
    same: Counter[str] = Counter()
    for example in json.loads(asked.spec.read_text()):
        section, html = example["section"], example["html"]
        if section in RAW:
            continue
        total[section] += 1
        markdown = markdown_of(html)
        expected, found = shape(html), shape(back.render(markdown))
        same[section] += expected == found
        if asked.show and expected != found:
            print(f"{example['example']} {section}\n  html     {html!r}\n  markdown {markdown!r}")
            print(f"  expected {expected!r}\n  found    {found!r}")
    print("| section | examples | the same |\n|---|---|---|")
    for section, number in total.items():
        print(f"| {section} | {number} | {same[section] / number:.1%} |")
    print(f"| all | {total.total()} | {same.total() / total.total():.1%} |")


if __name__ == "__main__":
    main()
