"""The hosts that a crawl excludes: lines such as example.com, example.com:8080, *.example.com or a URL. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from silkline.model.url import canonical, host_of

EXPECTED: Final = "a host, a domain, *.DOMAIN or a URL"
_COMMENT: Final = re.compile(r"(?:^|\s)#.*")
_PORT: Final = re.compile(r":(\d+)$")
_NAME: Final = re.compile(r"(?!.*\.\.)[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?")
_ADDRESS: Final = re.compile(r"\[[0-9a-f:.]+\]|\d+(\.\d+){3}")


def excluded_host(line: str) -> str:
    """The normal form of a line: `host[:port]` or `*.domain[:port]`. `ValueError`: the line is not valid."""
    text = line.strip()
    wild = re.match(r"(?:https?://)?\*\.", text, re.IGNORECASE)
    rest = text[wild.end() :] if wild else text
    rest = re.sub(r"^https?://", "", rest, flags=re.IGNORECASE).removeprefix(".")  # other tools write .example.com
    asked = re.split(r"[/?#]", rest, maxsplit=1)[0]
    url = canonical(f"http://{rest}") if re.fullmatch(r"[^\s*@/\\]+(?<!:)", asked) else None
    host = host_of(url) if url is not None else ""
    bare = _PORT.sub("", host)
    is_address = _ADDRESS.fullmatch(bare) is not None
    if not (is_address and not wild) and not (_NAME.fullmatch(bare) and not is_address):
        raise ValueError(f"{line.strip()[:80]!r} is not {EXPECTED}")
    return f"*.{host}" if wild else host


def excluded_hosts_of(lines: Iterable[str]) -> list[str]:
    """The hosts of a file, without comments and empty lines. `ValueError` contains the number of the wrong line."""
    found: list[str] = []
    for number, line in enumerate(lines, 1):
        text = _COMMENT.sub("", line).strip()
        if not text:
            continue
        try:
            found.append(excluded_host(text))
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
    return list(dict.fromkeys(found))


class ExcludedHosts:
    """Says whether a host is excluded.

    A domain covers its subdomains, and with `www.` also the domain itself; without a port it covers every port.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._hosts: set[str] = set()
        self._above: set[str] = set()
        for line in map(excluded_host, lines):
            wild, name = line.startswith("*."), line.removeprefix("*.")
            self._above.add(name)
            if not wild:
                self._hosts.add(name)
                self._hosts.add(name.removeprefix("www."))

    def __bool__(self) -> bool:
        return bool(self._above)

    def covers(self, host: str) -> bool:
        """`host` is `host[:port]` of a canonical URL."""
        bare = _PORT.sub("", host)
        port = host[len(bare) :]
        if bare in self._hosts or host in self._hosts:
            return True
        if bare.startswith("[") or _ADDRESS.fullmatch(bare):
            return False
        labels = bare.split(".")
        above = (".".join(labels[place:]) for place in range(1, len(labels)))
        return any(name in self._above or name + port in self._above for name in above)
