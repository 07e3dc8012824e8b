"""Measures the cost of parsing: links, facts and Markdown of one page, and the canonical URL of each link.

    python benchmarks/parse.py

Generates the pages (about 47 KB, 60 links each). Prints the CPU time of the best of several rounds as a Markdown table.
Nothing is asserted: compare runs on the same machine.
"""

import random
import time
from collections.abc import Callable

from ada_url import join_url
from turbohtml import parse

from silkline.model.page import Wanted
from silkline.model.url import KEEP_ALL, UrlRules, canonical, canonical_links, url_key
from silkline.parse.html import parse_page

ROUNDS = 15
PAGES = 60
LINKS = 60
WORDS = [
    f"{start}{end}"
    for start in ("lor", "ips", "dol", "sit", "ame", "con", "adi")
    for end in ("em", "um", "or", "at", "i")
]


def make_page(number: int, chance: random.Random) -> bytes:
    """A page of paragraphs with a link in each, two thirds of them to the same site."""
    blocks = [
        "<!doctype html><html lang=en><head><meta charset=utf-8>",
        f"<title>Page {number}</title><meta name=description content='About {number}'>",
        f"<link rel=canonical href=/page-{number}.html><meta property=og:title content=Page></head><body><main>",
    ]
    for link in range(LINKS):
        href = (
            f"/section-{link}/page-{number * LINKS + link}.html" if link % 3 else f"https://h{link}.example/p?n={link}"
        )
        text = " ".join(chance.choices(WORDS, k=122))
        blocks.append(f"<p class='text wide'>{text} <a href='{href}'>{chance.choice(WORDS)}</a></p>")
        if link % 10 == 0:
            blocks.append(f"<h2>Part {link}</h2>")
    return "\n".join([*blocks, "</main></body></html>"]).encode()


def best(work: Callable[[], object], count: int) -> float:
    """CPU seconds for one of the `count` items that `work` processes."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times) / count


def main() -> None:
    chance = random.Random(1)
    base = "https://www.example.com/section/page.html"
    pages = [make_page(number, chance) for number in range(PAGES)]
    modes = {
        "DOM only": None,
        "links, title, robots (`content=none`)": Wanted(),
        "… and simhash": Wanted(simhash=True),
        "… and facts": Wanted(facts=True, simhash=True),
        "facts, Markdown of the whole page (`full`)": Wanted(facts=True, content="full"),
        "facts, Markdown of the main content (`markdown`)": Wanted(facts=True, content="markdown"),
        "facts, text of the main content (`text`)": Wanted(facts=True, content="text"),
    }
    print(f"{PAGES} pages, {sum(map(len, pages)) / PAGES / 1000:.1f} KB and {LINKS} links each\n")
    print("| a page | ms |\n|---|---|")
    for name, wanted in modes.items():
        if wanted is None:
            spent = best(lambda: [parse(page) for page in pages], PAGES)
        else:
            spent = best(lambda wanted=wanted: [parse_page(page, base, wanted) for page in pages], PAGES)
        print(f"| {name} | {spent * 1000:.3f} |")

    hrefs = [
        f"/section-{n}/page-{n}.html" if n % 3 else f"https://h{n}.example/p?n={n}&utm_source=x" for n in range(600)
    ]
    urls = [url for url in canonical_links(base, hrefs) if url]
    ways: dict[str, Callable[[], object]] = {
        "`canonical_links`": lambda: canonical_links(base, hrefs),
        "… tracking parameters dropped": lambda: canonical_links(base, hrefs, UrlRules(drop_tracking=True)),
        "`canonical`, the long way": lambda: [canonical(href, KEEP_ALL, base) for href in hrefs],
        "ada `join_url` alone": lambda: [join_url(base, href) for href in hrefs],
        "`url_key`": lambda: [url_key(url) for url in urls],
    }
    print("\n| a link | µs |\n|---|---|")
    for name, work in ways.items():
        print(f"| {name} | {best(work, len(hrefs)) * 1e6:.2f} |")


if __name__ == "__main__":
    main()
