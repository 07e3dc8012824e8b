"""An external worker: claims `extension` jobs from Silkline over HTTP, fetches their pages and delivers them.

    python external_worker.py http://127.0.0.1:8700

It uses only the standard library. A browser extension sends the same requests with `fetch`. It refuses URLs with a
private address, such as http://192.168.1.5/, unless it is started with `--allow-private`.
"""

import http.client
import ipaddress
import json
import os
import socket
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

ENDS = {"pause": "paused", "stop": "stopped", "cancel": "cancelled"}
REFUSED = (400, 413, 422)  # what the server answers to a page that it never takes, however often it is sent
MOST_DELIVERY = 16_000_000  # bytes; the server refuses more, and may close the connection before all is sent
MOST_BYTES = 2_000_000  # of a page: even with every byte escaped, the delivery is not too large
METADATA_NAMES = (
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "instance-data",
    "instance-data.ec2.internal",
)


class LeaseLost(Exception):
    """This worker no longer owns the job: another worker claimed it, or it has ended."""


def ask(base, path, body, lease=""):
    headers = {"Content-Type": "application/json", "Silkline-Lease": lease}
    if os.environ.get("SILKLINE_API_TOKEN"):
        headers["Authorization"] = f"Bearer {os.environ['SILKLINE_API_TOKEN']}"
    request = urllib.request.Request(base.rstrip("/") + path, json.dumps(body).encode(), headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code == 409:
            raise LeaseLost(json.load(error)["detail"]) from error
        raise


def is_private(url):
    """Whether a URL has a private address, however it is written. A name is not resolved: it may still have one."""
    host = (urllib.parse.urlsplit(url).hostname or "").rstrip(".")
    try:
        found = socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):  # a name
        return host == "localhost" or host.endswith(".localhost") or host in METADATA_NAMES
    return not all(ipaddress.ip_address(address[0]).is_global for *_, address in found)


def page(url):
    """Fetch one page. Replace this function with your own code: a browser, a login, another program."""
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            text = answer.read(MOST_BYTES).decode("utf-8", "replace")
            data = {"title": text.partition("<title>")[2].partition("</title>")[0][:10_000], "markdown": text}
            return {"url": url, "final_url": answer.url, "http_status": answer.status, "data": data}
    except urllib.error.HTTPError as error:
        return {"url": url, "success": False, "http_status": error.code, "error": f"http_{error.code}"}
    except OSError:  # no such host, no connection, or no response in time
        return {"url": url, "success": False, "error": "connect_failed"}
    except (http.client.HTTPException, ValueError):  # no valid response, or a redirect to an invalid address
        return {"url": url, "success": False, "error": "bad_response"}


def deliver(base, here, found, lease):
    """Deliver one page. A page that the server refuses must not end the job: its URL is settled as failed."""
    for each in (found, {"url": found["url"], "success": False, "error": "not_deliverable"}):
        if len(json.dumps(each)) > MOST_DELIVERY:
            continue
        try:
            ask(base, f"{here}/results", {"pages": [each]}, lease)
            return
        except urllib.error.HTTPError as error:
            if error.code not in REFUSED:
                raise


def work_on(base, job, lease, allow_private):
    here = f"/v1/jobs/{job['id']}"
    for url in [job["spec"].get("url"), *job["spec"].get("urls", [])]:
        if not url:
            continue
        wish = ask(base, f"{here}/heartbeat", {}, lease)["desired"]
        if wish != "run":
            ask(base, f"{here}/finish", {"end": ENDS[wish]}, lease)
            return
        blocked = {"url": url, "success": False, "error": "address_blocked"}
        found = page(url) if allow_private or not is_private(url) else blocked
        if not allow_private and is_private(found.get("final_url", url)):  # it was redirected there
            found = blocked
        deliver(base, here, found, lease)
    ask(base, f"{here}/finish", {"end": "completed"}, lease)


def main(base, forever=True, allow_private=False):
    while True:
        claimed = ask(base, "/v1/claims", {"kinds": ["extension"], "name": "example"})["items"]
        for claim in claimed:
            try:
                work_on(base, claim["job"], claim["lease"], allow_private)
            except LeaseLost as error:
                print(error, file=sys.stderr)
        if not claimed:
            if not forever:
                return
            time.sleep(1)


if __name__ == "__main__":
    main(sys.argv[1], forever="--once" not in sys.argv, allow_private="--allow-private" in sys.argv)
