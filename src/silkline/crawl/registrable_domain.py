"""The registrable domain of a host: `example.co.uk` of `www.example.co.uk`.

The public suffix list is the one that the package tldextract brings. We read the list ourselves: importing the package
would load an HTTP library too, a quarter of the start of a fetcher.
"""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_LIST: Final = ".tld_set_snapshot"
_MOST_LABELS: Final = 16
"""No public suffix has more. A host may have a hundred labels, and each is compared with all after it."""
_END: Final = "// ===BEGIN PRIVATE DOMAINS==="  # suffixes of companies follow, such as those of hosting services


@lru_cache(maxsize=65_536)
def domain_of(host: str) -> str:
    """The registrable domain of a host, which may have a port. The host itself if there is none."""
    name = host.partition(":")[0].rstrip(".")
    labels = name.split(".")
    if host.startswith("[") or labels[-1].isdecimal():  # an IP address
        return host
    labels = labels[-_MOST_LABELS:]
    suffix = _start_of_suffix([_decoded(label) for label in labels])
    return ".".join(labels[suffix - 1 :]) if suffix and labels[suffix - 1] else host


def _start_of_suffix(labels: list[str]) -> int:
    """The number of labels before the public suffix. 0: there is none, or nothing is before it."""
    rules = _rules()
    for start in range(len(labels)):
        name, parent = ".".join(labels[start:]), ".".join(labels[start + 1 :])
        if f"!{name}" in rules:  # an exception to the rule of its parent
            return start + 1
        if name in rules or f"*.{parent}" in rules:
            return start
    return 0


def _decoded(label: str) -> str:
    """The list has the characters of a language, URLs have punycode."""
    if not label.startswith("xn--"):
        return label
    try:
        return label[4:].encode("ascii").decode("punycode")
    except UnicodeError:
        return label


@cache
def _rules() -> frozenset[str]:
    package = find_spec("tldextract")
    assert package is not None  # noqa: S101 - it is a dependency
    assert package.submodule_search_locations  # noqa: S101
    text = (Path(package.submodule_search_locations[0]) / _LIST).read_text(encoding="utf-8")
    lines = text.partition(_END)[0].splitlines()
    return frozenset(line.split()[0] for line in lines if line.strip() and not line.startswith("//"))
