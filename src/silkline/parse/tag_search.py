"""Finds the start tags in a body that matter to `bomb_guard`: of formatting, and of the two roots."""

import re
from typing import Final

# The formatting elements without `a` and `nobr`, because only one of each can be open, and the two roots. The pattern
# has both upper and lower case: this is twice as fast as IGNORECASE (20 µs for 47 KB). Its branches differ in their
# first character, so most other tags are refused at their second letter.
OPENED: Final = re.compile(
    rb"<[bBiIuUsSeEtTcCfFhH](?:[\s/>]|[mM](?:[\s/>]|[aA][lL]{2}[\s/>])"
    rb"|[tT](?:[\s/>]|[mM][lL][\s/>]|[rR][iIoO][kKnN][eEgG][\s/>])"
    rb"|[iI][gG][\s/>]|[oO](?:[dD][eEyY]|[nN][tT])[\s/>])"
)
_ROOTS: Final = (b"<h", b"<H", b"<bod", b"<boD", b"<bOd", b"<bOD", b"<Bod", b"<BoD", b"<BOd", b"<BOD")


def count_tags(body: bytes) -> tuple[int, bool, int]:
    """The same as `tag_counts.count_tags`, for machines where that is not compiled.

    The tags that are found, whether one of the two roots starts twice, and the number of `<`. Some tags with similar
    names are found as well: the pattern is faster so.
    """
    opened = OPENED.findall(body)
    roots = [tag[1:2].lower() for tag in opened if tag.startswith(_ROOTS)]
    return len(opened), len(roots) > len(set(roots)), body.count(b"<")
