"""The health check of the images: exit code 0 if the server at SILKLINE_HEALTH_URL answers 200.

It asks /healthz, not /readyz: a container must not be replaced because the database is away. It imports nothing of
Silkline, so that it starts quickly.
"""

import http.client
import os
import sys
from urllib.parse import urlsplit

SECONDS = 4


def main(url: str) -> int:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port or 80, timeout=SECONDS)
    try:
        connection.request("GET", parts.path or "/")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        print(f"{url} does not answer: {error}")
        return 1
    finally:
        connection.close()
    print(f"{url} answers {status}")
    return int(status != http.client.OK)


if __name__ == "__main__":
    sys.exit(main(os.environ.get("SILKLINE_HEALTH_URL", "http://127.0.0.1:8700/healthz")))
