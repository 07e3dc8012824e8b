"""Headers that only Silkline may set.

With them a request could contain a second request, or go to another host than the one that was checked.
"""

from typing import Final

FRAMING_HEADERS: Final = frozenset(
    {
        *("host", "content-length", "transfer-encoding", "te", "trailer", "connection", "keep-alive"),
        *("proxy-connection", "upgrade", "http2-settings", "expect"),
    }
)
