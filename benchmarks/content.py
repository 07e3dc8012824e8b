"""Quality and cost of main-content extraction, compared with common extractors. Prints Markdown tables.

    make bench BENCH=content ARGS="--data DIR"          or: .venv/bin/python benchmarks/content.py --help

DIR holds three sets of pages, which are not part of the project; a set that is missing is left out, and the output says so.

- `content-eval/`: `truth.json` lists, for each page in `html/`, the snippets that belong to its main content and the
  snippets that do not. A snippet counts as found if its words appear in the output in order.
- `wcxb/dev.tar.xz`, or `wcxb-dev/` unpacked: pages of seven types with their main content; word F1 by type.
- documentation packages of Debian, whose generators mark their content: words lost, words too many. They are installed,
  or unpacked (`dpkg -x`) in `docs/PACKAGE`.

`--against CHECKOUT` adds rows for the code in another checkout, for example an older commit.

The page model was trained on the first two; `train_page_model.py --held-out` shows what it does on sites that it did not
see. Time is CPU time per page, from bytes to text. The other extractors are installed into build/, never into our own
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
import os
import random
import re
import shutil
import subprocess
import tarfile
import time
import venv
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass

PEERS = ROOT / "build" / "content-peers"
PACKAGES = ["trafilatura==2.3.1", "readability-lxml==0.9", "resiliparse==1.1.0", "html-to-markdown==3.19.0"]
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
SIGNS = re.compile(r"[\s*_`#>|\\\-\[\]]+")

WORD = re.compile(r"\w+")
SETS = ROOT / "build" / "content-sets"
TYPES = ("article", "documentation", "forum", "product", "collection", "listing", "service")
DOCS = {  # package: the selector of its content, and of what in it is no content
    "git-doc": ("div#content", ""),
    "cmake-doc": ("div.body", ".headerlink"),
    "apache2-doc": ("div#page-content, div#preamble + div", ".toplang, #quickview, .bottomlang"),
    "python3.11-doc": ("div.body", ".headerlink"),
    "postgresql-doc-15": (
        "div.refentry, div.sect1, div.chapter, div.appendix, div.part, div.preface, div.reference, div.book",
        ".navheader, .navfooter, .toc",
    ),
}

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


def bare_parse() -> Extractor:
    from turbohtml import parse

    def extract(html: bytes, url: str) -> str:
        parse(html, positions=False)
        return ""

    return extract


OURS: dict[str, Callable[[], Extractor]] = {
    "(only the parse of turbohtml)": bare_parse,
    "Silkline, no content": lambda: silkline("none"),
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


def words(text: str) -> list[str]:
    return WORD.findall(LINK.sub(r"\1", text).lower())


def measure(extract: Extractor, listed: Path) -> dict[str, list[float]]:
    """Sums for each type of page: F1, precision, recall, pages that lose half, a tenth, seconds, number of pages."""
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0] * 7)
    for line in listed.open():
        page = json.loads(line)
        html = Path(page["path"]).read_bytes()
        start = time.process_time()
        try:
            found = extract(html, page["url"] or "https://page.example/") or ""
        except Exception:
            found = ""
        seconds = time.process_time() - start
        got, truth = words(found), words(page["truth"])
        both = sum((Counter(got) & Counter(truth)).values())
        precision = both / len(got) if got else 0.0
        recall = both / len(truth) if truth else float(not got)
        f1 = 2 * precision * recall / (precision + recall) if both else 0.0
        row = (f1, precision, recall, recall < 0.5, recall < 0.9, seconds, 1)
        for kind in (page["type"], "all"):
            sums[kind] = [old + new for old, new in zip(sums[kind], row, strict=True)]
    return dict(sums)


def listed_wcxb(data: Path) -> Path | None:
    """A list of the pages with their content, which the other environment can read too."""
    folder = data / "wcxb-dev"
    if not folder.is_dir():
        archive = data / "wcxb" / "dev.tar.xz"
        if not archive.is_file():
            return None
        folder = SETS / "wcxb-dev"
        if not folder.is_dir():
            SETS.mkdir(parents=True, exist_ok=True)
            with tarfile.open(archive) as packed:
                packed.extractall(SETS, filter="data")
    rows = []
    for line in (folder / "truth.jsonl").open():
        page = json.loads(line)
        path = str(folder / "html" / page["file"])
        rows.append({"path": path, "url": page["url"], "type": page["type"], "truth": page["main_content"]})
    return listed("wcxb.jsonl", rows)


def pages_of_package(package: str, data: Path) -> list[str]:
    """The HTML files of a Debian package: unpacked in DIR/docs, or installed."""
    folder = data / "docs" / package
    if folder.is_dir():
        files = [str(file) for file in folder.rglob("*")]
    elif shutil.which("dpkg"):
        asked = subprocess.run(["dpkg", "-L", package], capture_output=True, text=True)
        files = [] if asked.returncode else asked.stdout.split("\n")
    else:
        files = []
    return sorted(file for file in files if re.search(r"\.html?$", file) and Path(file).is_file())


def listed_docs(data: Path) -> Path | None:
    from turbohtml import parse

    rows = []
    for package, (selector, drop) in DOCS.items():
        files = pages_of_package(package, data)
        random.Random(5).shuffle(files)
        for file in sorted(files[:400])[:150]:
            found = parse(Path(file).read_bytes(), positions=False).remove("script, style").select(selector)
            if not found:
                continue
            content = max(found, key=lambda each: len(each.text))
            truth = (content.remove(drop) if drop else content).text
            if len(words(truth)) >= 60:
                rows.append({"path": file, "url": f"https://docs.example{file}", "type": package, "truth": truth})
    return listed("docs.jsonl", rows) if rows else None


def listed(name: str, rows: list[dict]) -> Path:
    SETS.mkdir(parents=True, exist_ok=True)
    (SETS / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return SETS / name


@dataclass(frozen=True)
class Side:
    """One extractor: of a package, of this checkout, or of another one."""

    name: str
    checkout: Path | None = None

    def __str__(self) -> str:
        return self.name if self.checkout in (None, ROOT) else f"{self.name} ({self.checkout.name})"

    def ask(self, *more: str) -> dict:
        """Runs this file with the Python and the code of this side."""
        python = sys.executable if self.checkout else str(PEERS / "bin" / "python")
        code = {"PYTHONPATH": str(self.checkout / "src")} if self.checkout else {}
        command = [python, __file__, "--only", self.name, *more]
        answer = subprocess.run(command, capture_output=True, text=True, env=os.environ | code)
        if answer.returncode:
            sys.exit(f"content: {self} failed:\n{answer.stderr}")
        return json.loads(answer.stdout.splitlines()[-1])

    def scored(self, data: Path) -> tuple[list[Tally], int]:
        result = self.ask("--data", str(data))
        return [Tally(**half) for half in result["halves"]], result["failures"]


def print_words(title: str, listed: Path, sides: list[Side], kinds: tuple[str, ...]) -> None:
    print(f"\n{title}\n")
    print(f"| extractor | F1 | precision | recall | lose half | lose a tenth | ms per page | {' | '.join(kinds)} |")
    print("|---|---|---|---|---|---|---|" + "---|" * len(kinds), flush=True)
    for side in sides:
        sums = side.ask("--list", str(listed), "--data", str(listed.parent))
        f1, precision, recall, half, tenth, seconds, pages = sums["all"]
        each = " | ".join(f"{sums[kind][0] / sums[kind][6]:.3f}" if kind in sums else "" for kind in kinds)
        print(
            f"| {side} | {f1 / pages:.3f} | {precision / pages:.3f} | {recall / pages:.3f} | {half:.0f} | "
            f"{tenth / pages:.1%} | {1000 * seconds / pages:.2f} | {each} |",
            flush=True,
        )


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


def row(name: Side, halves: list[Tally], failures: int) -> str:
    whole = halves[0] + halves[1]
    ms = 1000 * whole.seconds / max(whole.pages, 1)
    return (
        f"| {name} | {whole.f1:.3f} | {whole.precision:.3f} | {whole.recall:.3f} | {halves[0].f1:.3f} | "
        f"{halves[1].f1:.3f} | {ms:.2f} | {failures} |"
    )


def print_snippets(data: Path, sides: list[Side]) -> None:
    print("Snippets (content-eval)\n")
    print("| extractor | F1 | precision | recall | F1, even pages | F1, odd pages | ms per page | failures |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for side in sides:
        print(row(side, *side.scored(data)), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", action="store_true", help="only Silkline, without installing anything")
    parser.add_argument(
        "--against", metavar="CHECKOUT", type=Path, action="append", default=[], help="another checkout"
    )
    parser.add_argument("--only", metavar="NAME", choices=[*OURS, *THEIRS], help=argparse.SUPPRESS)
    parser.add_argument("--list", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--data", metavar="DIR", type=Path, required=True, help="the folder of the sets of pages")
    asked = parser.parse_args()
    makers = OURS | THEIRS
    if asked.only and asked.list:
        print(json.dumps(measure(makers[asked.only](), asked.list)))
        return
    if asked.only:
        pages = json.loads((asked.data / "truth.json").read_text())
        halves, failures = score(makers[asked.only](), asked.data, pages)
        print(json.dumps({"halves": [vars(half) for half in halves], "failures": failures}))
        return
    if not asked.ours:
        install_peers()
    # The same extractor of all checkouts in a row, so that a machine that changes its speed slows them down alike.
    sides = [Side(name, checkout) for name in OURS for checkout in (ROOT, *asked.against)]
    sides += [] if asked.ours else [Side(name) for name in THEIRS]
    snippets = asked.data / "content-eval"
    if (snippets / "truth.json").is_file():
        print_snippets(snippets, sides)
    else:
        print(f"content-eval is left out: {asked.data} has none")
    for title, found, kinds in (
        ("Words of seven types of pages (WCXB, F1 by type)", listed_wcxb(asked.data), TYPES),
        ("Words of documentation (F1 by package)", listed_docs(asked.data), tuple(DOCS)),
    ):
        if found is None:
            print(f"\n{title}: left out, its pages are not there")
        else:
            print_words(title, found, sides, kinds)


if __name__ == "__main__":
    main()
