"""Trains the page model (src/silkline/parse/page_model.json) from pages whose content is known.

    python benchmarks/train_page_model.py --data DIR [--docs DOCS.json] [--held-out]

DIR holds `wcxb-dev/` (`truth.jsonl`, `html/`) and `content-eval/` (`truth.json`, `html/`). DOCS.json maps folders of
documentation in DIR to the CSS selector of their content and of what in it is none: `page_model_docs.json` has those of
17 packages of Debian that are unpacked (`dpkg -x`) in DIR/docs/PACKAGE.
Needs Silkline, lightgbm, scikit-learn, scipy and numpy. --held-out trains five times on four fifths of the sites, scores
the choice of groups on the other fifth each time, and writes nothing.

1. Each group of the outline with text gets a label: the share of its words that the content of the page has. A text
   that is in the page more often than in the content, such as a quotation, counts half where it is said again.
2. A logistic regression with few weights (L1) learns what the words of classes, ids and roles say.
3. Small boosted trees learn from those weights (of sites that they were not fitted to) and the numbers of the groups.
4. More trees learn the same again, with what the first trees say about the groups around (again of other sites).

The outline looks less closely at elements with bad names, so its groups depend on the weights of names. Therefore these
are learned twice: first from a third of the pages with outlines of all elements, then with outlines that use the
weights of the first time. The result depends on nothing but the pages.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# When this file is started directly, its folder is first on the path, and its files would hide other modules.
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT / "benchmarks"]

import argparse
import gzip
import hashlib
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import lightgbm
import numpy as np
import scipy.sparse
from sklearn.linear_model import LogisticRegression
from turbohtml import Element, Text, parse

from silkline.parse.block_features import NAMES, PAGE_NAMES, describe, tokens
from silkline.parse.neighbours import NEAR_NAMES, neighbours
from silkline.parse.outline import INLINE, Group, Outline, Weigh

MODEL = ROOT / "src" / "silkline" / "parse" / "page_model.json"
UNSEEN = "script,style,template,iframe,svg,canvas,object,embed,audio,video,map,select,datalist,textarea,input,dialog"
WORD = re.compile(r"\w+")
WEIGHTS = NAMES.index("names_outer") + 1  # the first numbers of a group come from the weights of words
SITES_OF_A_TOKEN = 10
SHARPNESS = 1.2
DOCS_WEIGHT, SNIPPET_WEIGHT = 0.4, 0.5
KIND_WEIGHTS = {"forum": 1.7, "collection": 1.7, "product": 1.7, "listing": 1.7}
"""More than half of the pages are articles, and those are the easy ones."""
TREES = {"num_leaves": 16, "learning_rate": 0.15, "min_data_in_leaf": 100, "lambda_l2": 5, "feature_fraction": 0.6}
FIRST_ROUNDS, SECOND_ROUNDS = 30, 60
SEED, SEED_OF_TREES = 0, 1
"""Liblinear takes the rows in a random order and stops early; each tree sees a part of the rows and of the numbers."""
PARTS, FOLDS = 3, 5
PAGES_OF_A_FOLDER = 30
READERS = 4


def words(text: str) -> list[str]:
    return WORD.findall(text.lower())


def own_words(group: Group) -> list[list[str]]:
    """The words of each element of a group, without those of inner blocks."""
    found = []
    for element in group.elements:
        texts, stack = [], [element]
        while stack:
            node: Any = stack.pop()
            if isinstance(node, Text):
                texts.append(node.data)
            elif node is element or group.closed or (isinstance(node, Element) and node.tag in INLINE):
                stack += reversed(list(node.children))
        found.append(words(" ".join(texts)))
    return found


class Truth:
    """The words of the content of a page, and how many of them were found in the page."""

    def __init__(self, content: list[str]) -> None:
        self.joined = f" {' '.join(content)} "
        self.triples = Counter(zip(content, content[1:], content[2:], strict=False))
        self.phrases: dict[str, int] = {}

    def count(self, phrase: str) -> int:
        if phrase not in self.phrases:
            self.phrases[phrase] = self.joined.count(phrase)
        return self.phrases[phrase]

    def share(self, own: list[list[str]], seen: Counter[Any]) -> float:
        """The share of the words of a group that are in the content: as triples, or as a phrase if they are few.

        `seen` has how often each is in the page. If it is there more often than in the content, each counts less.
        """
        found = 0.0
        for each in filter(None, own):
            if len(each) <= 4:
                phrase = f" {' '.join(each)} "
                found += len(each) * min(self.count(phrase) / max(seen[phrase], 1), 1.0)
            else:
                triples = zip(each, each[1:], each[2:], strict=False)
                shares = [min(self.triples[one] / max(seen[one], 1), 1.0) for one in triples]
                found += len(each) * covered(len(each), shares)
        return found / max(sum(map(len, own)), 1)

    def take(self, own: list[list[str]]) -> float:
        """The same share, but what is found is used up: a second copy is not in the content."""
        found = 0.0
        for each in filter(None, own):
            if len(each) <= 4:
                phrase = f" {' '.join(each)} "
                left = self.count(phrase)
                self.phrases[phrase] = max(left - 1, 0)
                found += len(each) * float(left > 0)
            else:
                shares = []
                for triple in zip(each, each[1:], each[2:], strict=False):
                    left = self.triples[triple]
                    self.triples[triple] = max(left - 1, 0)
                    shares.append(float(left > 0))
                found += len(each) * covered(len(each), shares)
        return found / max(sum(map(len, own)), 1)


def covered(count: int, shares: list[float]) -> float:
    """The share of so many words that are in triples of the content; `shares` has how much each triple counts."""
    best = [0.0] * count
    for at, share in enumerate(shares):
        for one in range(at, at + 3):
            best[one] = max(best[one], share)
    return sum(best) / count


def count_seen(own: list[list[list[str]]]) -> Counter[Any]:
    """How often each phrase of few words, and each triple of words, is in the page."""
    seen: Counter[Any] = Counter()
    for element in (element for each in own for element in each):
        if len(element) <= 4:
            seen[f" {' '.join(element)} "] += 1
        else:
            seen.update(zip(element, element[1:], element[2:], strict=False))
    return seen


def labels_of(groups: list[Group], leaves: list[Group], own: list[list[list[str]]], content: list[str]) -> list[float]:
    """The share of the words of each leaf that are content, where a text that is said again counts half.

    A text may be in the page twice and in the content once, such as a post and its quotation, or a card for each of two
    sizes of screen. Then that one is content around which most of the text is.
    """
    truth, seen = Truth(content), count_seen(own)
    fair = [truth.share(each, seen) for each in own]
    anywhere = [truth.share(each, Counter()) for each in own]
    good, size = [0.0] * len(groups), [0.0] * len(groups)
    for group, one, each in zip(leaves, fair, own, strict=True):
        size[group.index] = float(sum(map(len, each)))
        good[group.index] = one * size[group.index]
    for group in reversed(groups):
        if group.up is not None:
            good[group.up.index] += good[group.index]
            size[group.up.index] += size[group.index]
    around = [good[up.index] / max(size[up.index], 1) for group in leaves for up in [group.up or group]]
    found = [0.0] * len(leaves)
    for at in sorted(range(len(leaves)), key=lambda at: fair[at] + around[at], reverse=True):
        found[at] = (truth.take(own[at]) + anywhere[at]) / 2
    return found


def weigh_all_alike(tag: str, names: str, element: Element) -> float:
    return 0.0


def weigh_by(weights: dict[str, float]) -> Weigh:
    return lambda tag, names, element: sum(weights.get(token, 0.0) for token in tokens(tag, names, element))


def page_of(
    html: bytes, url: str, truth: str, site: str, kind: str, weigh: Weigh, *, roughly: bool
) -> dict[str, Any] | None:
    """What the training knows of a page. `roughly`: a text that is said again counts as often as it is said."""
    document = parse(html, positions=False).remove(UNSEEN)
    for element in document.find_all("noscript"):
        if len(element.text.strip()) < 200:
            element.extract()
    body = document.find("body")
    if body is None:
        return None
    groups = Outline(body, weigh).groups
    leaves = [group for group in groups if group.own]
    content = words(truth)
    own = [own_words(group) for group in leaves]
    sizes = [sum(map(len, each)) for each in own]
    if roughly:
        truth_of_words = Truth(content)
        labels = [truth_of_words.share(each, Counter()) for each in own]
    else:
        labels = labels_of(groups, leaves, own, content)
    names = [tokens(g.tag, g.elements[0].attr("class") or "", g.elements[0]) for g in groups]
    for group in groups:
        group.elements = [None] * len(group.elements)  # type: ignore[list-item] # frees the document
    return {
        "site": site,
        "url": url,
        "kind": kind,
        "truth": Counter(content),
        "groups": groups,
        "leaves": [group.index for group in leaves],
        "tags": [group.tag for group in leaves],
        "up": [group.up.index if group.up else -1 for group in groups],
        "tokens": names,
        "labels": labels,
        "sizes": sizes,
        "words": [[word for one in each for word in one] for each in own],
        "weights": [size / (len(content) + 0.3 * sum(sizes) + 20) for size in sizes],
    }


def snippets(page: dict[str, Any], inside: list[str], outside: list[str]) -> None:
    """Labels and weights from snippets that are content or not; all other groups count nothing."""
    for at, own in enumerate(page["words"]):
        text = f" {' '.join(own)} "
        yes = sum(f" {' '.join(words(one))} " in text for one in inside)
        no = sum(f" {' '.join(words(one))} " in text for one in outside)
        page["labels"][at] = yes / max(yes + no, 1)
        page["weights"][at] = SNIPPET_WEIGHT * (yes + no)
    page["snippets"] = [[" ".join(words(one)) for one in each] for each in (inside, outside)]


def site_of(url: str) -> str:
    return ".".join(re.sub(r"^https?://", "", url).split("/")[0].split(":")[0].split(".")[-2:])


Page = tuple[bytes, str, str, str, str, tuple[list[str], list[str]] | None]
"""A page whose content is known: its HTML, URL, content, site and kind, and snippets that are in the content or not."""


def known(data: Path, docs: Path | None, step: int) -> Iterator[Page]:
    """All pages, or of each set every page after `step` others."""
    for line in (data / "wcxb-dev" / "truth.jsonl").open().readlines()[::step]:
        one = json.loads(line)
        html = (data / "wcxb-dev" / "html" / one["file"]).read_bytes()
        yield html, one["url"] or "", one["main_content"], site_of(one["url"] or one["file"]), one["type"], None
    for one in json.loads((data / "content-eval" / "truth.json").read_text())[::step]:
        html = gzip.decompress((data / "content-eval" / "html" / one["file"]).read_bytes())
        sides = (one["with"], one["without"])
        yield html, one["url"], " ".join(one["with"]), site_of(one["url"]), "snippets", sides
    for name, (selector, drop) in (json.loads(docs.read_text()) if docs else {}).items():
        folder = data / name
        files = sorted(file for file in folder.rglob("*.htm*") if re.search(r"\.html?$", file.name) and file.is_file())
        random.Random(7).shuffle(files)
        for file in files[:PAGES_OF_A_FOLDER:step]:
            found = parse(file.read_bytes(), positions=False).remove("script, style").select(selector)
            if found:
                content = max(found, key=lambda each: len(each.text))
                truth = (content.remove(drop) if drop else content).to_text()
                if len(words(truth)) >= 60:
                    url = f"https://docs.example/{file.relative_to(folder)}"
                    yield file.read_bytes(), url, truth, folder.name, "docs", None


def read(page: Page, weights: dict[str, float] | None) -> dict[str, Any] | None:
    html, url, truth, site, kind, sides = page
    weigh = weigh_all_alike if weights is None else weigh_by(weights)
    found = page_of(html, url, truth, site, kind, weigh, roughly=weights is None)
    if found is None or not found["leaves"]:
        return None
    if sides is not None:
        snippets(found, *sides)
    elif kind == "docs":
        found["weights"] = [DOCS_WEIGHT * weight for weight in found["weights"]]
    return found


def loaded(data: Path, docs: Path | None, weights: dict[str, float] | None, step: int = 1) -> list[dict[str, Any]]:
    with ProcessPoolExecutor(READERS) as readers:
        found = readers.map(partial(read, weights=weights), known(data, docs, step), chunksize=8)
        return [page for page in found if page is not None]


def weighed(pages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The pages with more weight for the types that are few and hard."""
    for page in pages:
        page["weights"] = [weight * KIND_WEIGHTS.get(page["kind"], 1.0) for weight in page["weights"]]
    return pages


class Trainer:
    def __init__(self, pages: list[dict[str, Any]]) -> None:
        self.pages = pages
        self.page = np.concatenate([np.full(len(each["leaves"]), at) for at, each in enumerate(pages)])
        self.rows = np.concatenate([numbers_of(each) for each in pages])
        self.labels = np.concatenate([each["labels"] for each in pages])
        weights = np.concatenate([each["weights"] for each in pages])
        self.weights = weights * len(weights) / weights.sum()
        self.starts = np.searchsorted(self.page, np.arange(len(pages) + 1))
        self.fold = np.array([number_of(each["site"], FOLDS) for each in pages])
        self.part = np.array([number_of("part of " + each["site"], PARTS) for each in pages])[self.page]
        sites: dict[str, set[str]] = defaultdict(set)
        for each in pages:
            for token in {token for found in each["tokens"] for token in found}:
                sites[token].add(each["site"])
        self.vocabulary = {t: at for at, t in enumerate(sorted(t for t in sites if len(sites[t]) >= SITES_OF_A_TOKEN))}
        self.tags = sorted({tag for each in pages for tag in each["tags"]})
        self._build()

    def _build(self) -> None:
        """One row for each leaf: how often its path has each token, and its tag."""
        own, path = [], []
        for each in self.pages:
            inherited: list[Counter[int]] = []
            for found, up in zip(each["tokens"], each["up"], strict=True):
                mine = Counter(self.vocabulary[token] for token in found if token in self.vocabulary)
                inherited.append(mine + inherited[up] if up >= 0 else mine)
                own.append(mine)
            path += [inherited[leaf] for leaf in each["leaves"]]
        self.elements = self._matrix(own, len(self.vocabulary))
        tags = [Counter({self.tags.index(tag): 1}) for each in self.pages for tag in each["tags"]]
        paths = self._matrix(path, len(self.vocabulary))
        paths.data = np.minimum(paths.data, 2)
        self.known = scipy.sparse.hstack([paths, self._matrix(tags, len(self.tags))]).tocsr()
        self.leaf_tag = np.array([self.tags.index(tag) for each in self.pages for tag in each["tags"]])

    @staticmethod
    def _matrix(counts: list[Counter[int]], width: int) -> Any:
        at = [row for row, each in enumerate(counts) for _ in each]
        columns = [column for each in counts for column in each]
        values = [float(value) for each in counts for value in each.values()]
        return scipy.sparse.csr_matrix((values, (at, columns)), shape=(len(counts), width))

    def names(self, rows: Any) -> Any:
        """The weights of tokens and tags, fitted to these rows."""
        label, weight = self.labels[rows], self.weights[rows]
        weights = np.r_[weight * label, weight * (1 - label)]
        known = scipy.sparse.vstack([self.known[rows]] * 2)
        target = np.r_[np.ones(len(rows)), np.zeros(len(rows))]
        used = weights > 1e-6
        model = LogisticRegression(C=0.05, solver="liblinear", l1_ratio=1, max_iter=50, random_state=SEED)
        return model.fit(known[used], target[used], sample_weight=weights[used]).coef_[0]

    def name_columns(self, weights: Any) -> Any:
        """Sum, least and most of the weights on the path of each leaf, that of its tag, and those of itself and near."""
        each = self.elements @ weights[: len(self.vocabulary)]
        paths, near, offset = [], [], 0
        for page in self.pages:
            path: list[tuple[float, float, float]] = []
            ups = page["up"]
            for at, up in enumerate(ups):
                value = each[offset + at]
                total, least, most = path[up] if up >= 0 else (0.0, 0.0, 0.0)
                path.append((total + value, min(least, value), max(most, value)))
            for leaf in page["leaves"]:
                parent = ups[leaf] if leaf else leaf
                outer = ups[parent] if parent else parent
                paths.append(path[leaf])
                near.append([each[offset + one] for one in (leaf, parent, outer)])
            offset += len(ups)
        tags = weights[len(self.vocabulary) :][self.leaf_tag]
        return np.column_stack([np.array(paths), tags, np.array(near)])

    def train(self, rows: Any) -> "Model":
        """Everything, from these rows. What a stage learns from an earlier one is what that says of unknown sites."""
        weights = self.names(rows)
        names, likely = self.name_columns(weights), np.zeros(len(self.labels))
        for one in range(PARTS):
            others = self.name_columns(self.names(rows[self.part[rows] != one]))
            names[rows[self.part[rows] == one]] = others[rows[self.part[rows] == one]]
        numbers = np.column_stack([names, self.rows])
        for one in range(PARTS):
            trees = self.trees(numbers, rows[self.part[rows] != one], FIRST_ROUNDS)
            mine = rows[self.part[rows] == one]
            likely[mine] = trees.predict(numbers[mine])
        first = self.trees(numbers, rows, FIRST_ROUNDS)
        second = self.trees(np.column_stack([numbers, self.near(likely)]), rows, SECOND_ROUNDS)
        return Model(weights, first, second)

    def trees(self, numbers: Any, rows: Any, rounds: int) -> Any:
        data = lightgbm.Dataset(numbers[rows], self.labels[rows], weight=self.weights[rows])
        settings = {"objective": "cross_entropy", "bagging_fraction": 0.8, "bagging_freq": 1, "verbose": -1, **TREES}
        settings |= {"deterministic": True, "force_row_wise": True, "num_threads": 2, "seed": SEED_OF_TREES}
        return lightgbm.train(settings, data, rounds)

    def near(self, likely: Any) -> Any:
        found = []
        for page, start, end in zip(self.pages, self.starts, self.starts[1:], strict=False):
            groups = page["groups"]
            found += neighbours(groups, [groups[leaf] for leaf in page["leaves"]], likely[start:end].tolist())
        return np.array(found)

    def predict(self, model: "Model") -> Any:
        numbers = np.column_stack([self.name_columns(model.weights), self.rows])
        return model.second.predict(np.column_stack([numbers, self.near(model.first.predict(numbers))]))

    def score(self, predicted: Any) -> None:
        likely = predicted**SHARPNESS
        scores = defaultdict(list)
        right = missed = wrong = 0
        for at, page in enumerate(self.pages):
            mine = likely[self.starts[at] : self.starts[at + 1]]
            sizes = np.array([page["groups"][leaf].own for leaf in page["leaves"]], float)
            order = np.argsort(-mine)
            good, taken = np.cumsum((mine * sizes)[order]), np.cumsum(sizes[order])
            kept = order[: int((good / (taken + good[-1] + 1e-9)).argmax()) + 1]
            if page["kind"] == "snippets":
                text = f" {' '.join(word for one in sorted(kept) for word in page['words'][one])} "
                inside, outside = ([f" {one} " in text for one in each] for each in page["snippets"])
                right, missed, wrong = right + sum(inside), missed + len(inside) - sum(inside), wrong + sum(outside)
                continue
            got = Counter(word for one in kept for word in page["words"][one])
            both = sum((got & page["truth"]).values())
            all_words = sum(page["truth"].values())
            f1 = 2 * both / max(sum(got.values()) + all_words, 1)
            row = (f1, both / max(sum(got.values()), 1), both / max(all_words, 1))
            for kind in {page["kind"], "WCXB" if page["kind"] != "docs" else "docs"}:
                scores[kind].append(row)
        for kind, found in sorted(scores.items()):
            f1, precision, recall = np.mean(found, axis=0)
            losing = np.mean([row[2] < 0.9 for row in found])
            print(
                f"{kind:14} {len(found):5} pages  F1 {f1:.3f}  P {precision:.3f}  R {recall:.3f}  lose a tenth {losing:.1%}"
            )
        print(f"snippets       F1 {2 * right / max(2 * right + missed + wrong, 1):.3f}", flush=True)


class Model(NamedTuple):
    """The weights of names, and the trees of both stages."""

    weights: Any
    first: Any
    second: Any


def numbers_of(page: dict[str, Any]) -> Any:
    """The numbers of the groups and of the page, without those that come from the weights of names."""
    found = describe(page["groups"], page["url"], {})
    return np.array([[*row[WEIGHTS:], *found.page] for row in found.rows], float)


def number_of(site: str, count: int) -> int:
    return int(hashlib.md5(site.encode()).hexdigest(), 16) % count


def as_weights(names: Iterable[str], weights: Any) -> dict[str, float]:
    pairs = zip(names, weights, strict=True)
    return {name: round(float(weight), 3) for name, weight in pairs if abs(weight) >= 0.0005}


def as_lists(node: dict[str, Any]) -> Any:
    if "leaf_value" in node:
        return round(node["leaf_value"], 4)
    limit = float(f"{node['threshold']:.5g}")
    return [node["split_feature"], limit, as_lists(node["left_child"]), as_lists(node["right_child"])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="DIR", type=Path, required=True)
    parser.add_argument("--docs", metavar="FILE", type=Path, help="folders of documentation with their selectors")
    parser.add_argument("--held-out", action="store_true", help="score on sites that were not trained on")
    asked = parser.parse_args()
    first = Trainer(loaded(asked.data, asked.docs, None, step=3))
    names = first.names(np.arange(len(first.labels)))[: len(first.vocabulary)]
    trainer = Trainer(weighed(loaded(asked.data, asked.docs, as_weights(first.vocabulary, names))))
    if asked.held_out:
        predicted = np.zeros(len(trainer.labels))
        fold = trainer.fold[trainer.page]
        for one in range(FOLDS):
            predicted[fold == one] = trainer.predict(trainer.train(np.where(fold != one)[0]))[fold == one]
        trainer.score(predicted)
        return
    weights, first_trees, second_trees = model = trainer.train(np.arange(len(trainer.labels)))
    trainer.score(trainer.predict(model))
    count = len(trainer.vocabulary)
    data = {
        "features": [*NAMES, *PAGE_NAMES, *NEAR_NAMES],
        "tokens": as_weights(trainer.vocabulary, weights[:count]),
        "leaf": as_weights(trainer.tags, weights[count:]),
        "first": [as_lists(tree["tree_structure"]) for tree in first_trees.dump_model()["tree_info"]],
        "second": [as_lists(tree["tree_structure"]) for tree in second_trees.dump_model()["tree_info"]],
    }
    MODEL.write_text(json.dumps(data, separators=(",", ":")))


if __name__ == "__main__":
    main()
