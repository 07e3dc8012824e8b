"""Quality and cost of main-content extraction, compared with common extractors. Prints a Markdown table.

    make bench BENCH=content ARGS="--data DIR"          or: .venv/bin/python benchmarks/content.py --help

Runs on the pages of DIR, which are not part of the project: `truth.json` lists, for each page in `html/`, the snippets
that belong to its main content and the snippets that do not. A snippet counts as found if its words appear in the
output in order. The rules were made with the even pages; the odd pages were not used. The table shows both halves. Time
is CPU time per page, from bytes to text. The other extractors are installed into build/, never into our own
environment. If one cannot be installed, the benchmark fails.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# When this file is started directly, its folder is first on the path, and its files would hide other modules.
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT / "benchmarks"]

import argparse
import gzip
import json
import re
import subprocess
import time
import venv
from collections.abc import Callable
from dataclasses import dataclass

PEERS = ROOT / "build" / "content-peers"
PACKAGES = ["trafilatura==2.3.1", "readability-lxml==0.9", "resiliparse==1.1.0", "html-to-markdown==3.19.0"]
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
SIGNS = re.compile(r"[\s*_`#>|\\\-\[\]]+")

Extractor = Callable[[bytes, str], str]


@dataclass
class Tally:
    """The numbers of found and missed snippets, and the seconds."""

    right: int = 0
    missed: int = 0
    wrong: int = 0
    pages: int = 0
    seconds: float = 0.0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))

    @property
    def precision(self) -> float:
        return self.right / max(self.right + self.wrong, 1)

    @property
    def recall(self) -> float:
        return self.right / max(self.right + self.missed, 1)

    @property
    def f1(self) -> float:
        return 2 * self.precision * self.recall / max(self.precision + self.recall, 1e-9)


def silkline(mode: str) -> Extractor:
    from silkline.model.page import Wanted
    from silkline.parse.html import parse_page

    def extract(html: bytes, url: str) -> str:
        page = parse_page(html, url, Wanted(content=mode))
        return page.markdown or page.text

    return extract


def trafilatura(fast: bool) -> Extractor:
    from trafilatura import extract

    return lambda html, url: extract(html, url=url, fast=fast) or ""


def readability() -> Extractor:
    from lxml.html import fromstring
    from readability import Document

    return lambda html, url: fromstring(Document(html).summary()).text_content()


def resiliparse() -> Extractor:
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.encoding import bytes_to_str, detect_encoding

    return lambda html, url: extract_plain_text(bytes_to_str(html, detect_encoding(html)), main_content=True)


def html_to_markdown() -> Extractor:
    from html_to_markdown import convert

    def extract(html: bytes, url: str) -> str:
        found = convert(html.decode("utf-8", "replace"))
        return found if isinstance(found, str) else str(found.content)

    return extract


OURS: dict[str, Callable[[], Extractor]] = {
    "Silkline, Markdown": lambda: silkline("markdown"),
    "Silkline, text": lambda: silkline("text"),
    "Silkline, whole page": lambda: silkline("full"),
}
THEIRS: dict[str, Callable[[], Extractor]] = {
    "trafilatura": lambda: trafilatura(fast=False),
    "trafilatura, fast": lambda: trafilatura(fast=True),
    "readability-lxml": readability,
    "resiliparse": resiliparse,
    "html-to-markdown, whole page": html_to_markdown,
}


def plain(text: str) -> str:
    return SIGNS.sub(" ", LINK.sub(r"\1", text)).strip()


def score(extract: Extractor, data: Path, pages: list[dict]) -> tuple[list[Tally], int]:
    """A tally for each half of the pages, and the number of pages where the extractor raised an exception."""
    halves, failures = [Tally(), Tally()], 0
    for number, page in enumerate(pages):
        html = gzip.decompress((data / "html" / page["file"]).read_bytes())
        url = page["url"] if page["url"].startswith("http") else "https://page.example/"
        start = time.process_time()
        try:
            found = extract(html, url)
        except Exception:
            found, failures = "", failures + 1
        seconds = time.process_time() - start
        body = plain(found)
        right = sum(plain(snippet) in body for snippet in page["with"])
        wrong = sum(plain(snippet) in body for snippet in page["without"])
        halves[number % 2] += Tally(right, len(page["with"]) - right, wrong, 1, seconds)
    return halves, failures


def scored_by_peer(name: str, data: Path) -> tuple[list[Tally], int]:
    """Runs this file in the other environment, for one extractor that is installed there."""
    command = [str(PEERS / "bin" / "python"), __file__, "--data", str(data), "--only", name]
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode:
        sys.exit(f"content: {name} failed:\n{answer.stderr}")
    result = json.loads(answer.stdout.splitlines()[-1])
    return [Tally(**half) for half in result["halves"]], result["failures"]


def install_peers() -> None:
    if not (PEERS / "installed").exists():
        print("installing the other extractors into build/ ...", file=sys.stderr)
        venv.create(PEERS, with_pip=True, clear=True)
        pip = [
            str(PEERS / "bin" / "python"),
            "-m",
            "pip",
            "--quiet",
            "--quiet",
            "--disable-pip-version-check",
            "install",
        ]
        # The pip of Python 3.11 fails for `lxml[html_clean]`, which two extractors require.
        if subprocess.run([*pip, "--upgrade", "pip"]).returncode or subprocess.run([*pip, *PACKAGES]).returncode:
            sys.exit(
                "content: the other extractors could not be installed (see above); nothing is compared without them"
            )
        (PEERS / "installed").write_text("\n".join(PACKAGES))


def row(name: str, halves: list[Tally], failures: int) -> str:
    whole = halves[0] + halves[1]
    ms = 1000 * whole.seconds / max(whole.pages, 1)
    return (
        f"| {name} | {whole.f1:.3f} | {whole.precision:.3f} | {whole.recall:.3f} | {halves[0].f1:.3f} | "
        f"{halves[1].f1:.3f} | {ms:.2f} | {failures} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", action="store_true", help="only Silkline, without installing anything")
    parser.add_argument("--only", metavar="NAME", choices=THEIRS, help=argparse.SUPPRESS)
    parser.add_argument("--data", metavar="DIR", type=Path, required=True, help="the folder of the pages")
    asked = parser.parse_args()
    if not (asked.data / "truth.json").is_file():
        sys.exit(f"content: {asked.data} has no truth.json: name the folder that holds it and the folder html")
    pages = json.loads((asked.data / "truth.json").read_text())
    if asked.only:
        halves, failures = score(THEIRS[asked.only](), asked.data, pages)
        print(json.dumps({"halves": [vars(half) for half in halves], "failures": failures}))
        return
    if not asked.ours:
        install_peers()
    print("| extractor | F1 | precision | recall | F1, even pages | F1, odd pages | ms per page | failures |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for name, make in OURS.items():
        print(row(name, *score(make(), asked.data, pages)), flush=True)
    if not asked.ours:
        for name in THEIRS:
            print(row(name, *scored_by_peer(name, asked.data)), flush=True)


if __name__ == "__main__":
    main()
