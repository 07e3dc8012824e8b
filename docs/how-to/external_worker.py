"""An external worker: claims `extension` jobs from Silkline over HTTP, fetches their pages and delivers them.

    python external_worker.py http://127.0.0.1:8700

It uses only the standard library. A browser extension sends the same requests with `fetch`.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request

ENDS = {"pause": "paused", "stop": "stopped", "cancel": "cancelled"}


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


def page(url):
    """Fetch one page. Replace this function with your own code: a browser, a login, another program."""
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            text = answer.read().decode("utf-8", "replace")
            data = {"title": text.partition("<title>")[2].partition("</title>")[0], "markdown": text}
            return {"url": url, "final_url": answer.url, "http_status": answer.status, "data": data}
    except urllib.error.HTTPError as error:
        return {"url": url, "success": False, "http_status": error.code, "error": f"http_{error.code}"}
    except OSError:  # no such host, no connection, or no response in time
        return {"url": url, "success": False, "error": "connect_failed"}


def work_on(base, job, lease):
    here = f"/v1/jobs/{job['id']}"
    for url in [job["spec"].get("url"), *job["spec"].get("urls", [])]:
        if not url:
            continue
        wish = ask(base, f"{here}/heartbeat", {}, lease)["desired"]
        if wish != "run":
            ask(base, f"{here}/finish", {"end": ENDS[wish]}, lease)
            return
        ask(base, f"{here}/results", {"pages": [page(url)]}, lease)
    ask(base, f"{here}/finish", {"end": "completed"}, lease)


def main(base, forever=True):
    while True:
        claimed = ask(base, "/v1/claims", {"kinds": ["extension"], "name": "example"})["items"]
        for claim in claimed:
            try:
                work_on(base, claim["job"], claim["lease"])
            except LeaseLost as error:
                print(error, file=sys.stderr)
        if not claimed:
            if not forever:
                return
            time.sleep(1)


if __name__ == "__main__":
    main(sys.argv[1], forever="--once" not in sys.argv)
