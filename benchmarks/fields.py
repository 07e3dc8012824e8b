"""Measures what fields, kept HTML and page hooks cost a crawl, as ratios to a crawl without them, in one run.

    python -m benchmarks.fields [--pages 1500] [--rounds 2]

Crawls a synthetic web on this machine in turn: plain, with ten fields, with `--keep-html`, and with a hook that does
nothing. Prints the CPU time of the crawling processes for each page as a Markdown table. Nothing is asserted: other
work on the machine changes the times, so compare the ratios.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.crawl.harness import SyntheticWeb
from tests.support.plugins import install

FIELDS = {
    "heading": "h1",
    "title": "title",
    "first": "p",
    "links": {"css": "a", "many": True, "type": "url"},
    "count": {"xpath": "count(//p)", "type": "number"},
    "described": "meta:description",
    "shared": "og:title",
    "name": "json-ld:Product.name",
    "price": {"css": ".price", "type": "price"},
    "word": {"css": "p", "regex": r"(\w+)"},
}
EMPTY_HOOK = "def look(page):\n    return None\n"
CASES = ("plain", "ten fields", "keep html", "empty hook")


def crawl(web: SyntheticWeb, case: str, pages: int, folder: Path) -> tuple[float, int]:
    """CPU seconds of one crawl, and its pages."""
    options = {"ten fields": ["--fields", str(folder / "fields.json")], "keep html": ["--keep-html"]}.get(case, [])
    path = [str(ROOT / "src"), *([str(folder / "hooks")] if case == "empty hook" else [])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "SILKLINE_DATA": str(folder / "data")}
    command = [sys.executable, "-m", "silkline", "crawl", web.start, "--scope", "any", "--limit", str(pages), "--json"]
    command += ["--speed", "max", "--content", "none", "--fetchers", "1", "--allow-private", "127.0.0.0/8", *options]
    before = _children()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return _children() - before, json.loads(done.stdout)["progress"]["done"]


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=2)
    asked = parser.parse_args()
    best: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "fields.json").write_text(json.dumps({"fields": FIELDS}))
        install(folder / "hooks", {"empty_hook": EMPTY_HOOK}, {}, {"empty": "empty_hook:look"})
        web = SyntheticWeb(20, asked.pages)
        try:
            for _ in range(asked.rounds):
                for case in CASES:
                    seconds, pages = crawl(web, case, asked.pages, folder)
                    best[case] = min(best.get(case, 1e9), seconds / pages)
        finally:
            web.close()
    print("| crawl | CPU ms a page | ratio |\n|---|---|---|")
    for case in CASES:
        print(f"| {case} | {best[case] * 1000:.2f} | {best[case] / best['plain']:.2f} |")


if __name__ == "__main__":
    main()
