"""What the leader of a crawl spends on a page that another fetcher fetched: this bounds a crawl on one machine.

    make bench BENCH=leader ARGS="--against ../older"

The real leader and recorder get the messages of two other fetchers, encoded before the clock starts: batches of 4 pages
with 25 new URLs each, and with links to 13 URLs of the other fetcher, which answers with them. A checkpoint follows
every 500 pages. What the leader sends is encoded, and goes nowhere. `--against DIR` measures another checkout of
Silkline in turn with this one; the table shows the best round of each. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BATCH, OWN, ABROAD, LINKS, CHECKPOINT = 4, 25, 13, 60, 500
METADATA = '{"http_status":200,"content_type":"text/html","bytes":16412,"depth":3,"seconds":0.1234,"first_byte":0.0934}'


class Sink:
    """A fetcher that hears everything and does nothing. The leader encodes what it sends to it."""

    ready, blamed = True, False

    def __init__(self, index: int, encode: Any) -> None:
        self.index, self.pid, self._encode = index, index, encode

    def send(self, message: Any) -> None:
        self._encode(message)

    def close(self) -> None:
        """There is nothing to close."""


class NoOrders:
    order = None

    def wait(self, seconds: float) -> None:
        """There are no orders here."""

    def subscribe(self, callback: Any) -> None:
        """There are no orders here."""


class Progress:
    def __init__(self, database: Any, job: Any) -> None:
        self.database, self.job = database, job

    def record(self, checkpoint: Any) -> Any:
        from silkline.store import urls

        return urls.record(self.database, self.job, checkpoint)

    def report(self) -> None:
        """Nobody waits for a sign of life."""


def frames(pages: int, content: int) -> list[tuple[bytes, bytes]]:
    """The batches of fetcher 1, each with the answer of fetcher 2."""
    from silkline.crawl.messages import FoundUrl, Live, PageOutcome, encoder
    from silkline.crawl.outbox import Outbox
    from silkline.model.ledger import NewResult, Settled
    from silkline.model.parcel import Links

    chance, encode = random.Random(1), encoder().encode
    one, two = Outbox(), Outbox()
    data = json.dumps({"title": "The title of a page", **({"markdown": "word " * (content // 5)} if content else {})})

    def address() -> tuple[str, str]:
        host = f"www.host-{chance.randrange(2000)}.example"
        return f"https://{host}/section-{chance.randrange(40)}/page-{chance.randrange(10**6)}.html", host

    def found(number: int, page: int) -> list[FoundUrl]:
        return [
            FoundUrl(chance.getrandbits(63), *address(), 3, "queued", None, None, page, "link") for _ in range(number)
        ]

    def length(message: Any) -> bytes:
        frame: bytes = encode(message)
        return len(frame).to_bytes(4, "big") + frame

    live = Live(100, 20_000, [address()[0] for _ in range(10)])
    made = []
    for batch in range(pages // BATCH):
        for page in range(batch * BATCH + 1, (batch + 1) * BATCH + 1):
            url = address()[0]
            result = NewResult(page, url, page, url, page, data, True, METADATA)
            names = chance.randbytes(8 * LINKS)
            one.page(PageOutcome(Settled(page, "done", None, None, 1, 200), result, 3 if page > 1 else 0, names))
            one.found += found(OWN, page)
            one.foreign(2, Links(page, 3, "link", "", [address()[0] for _ in range(ABROAD)], "www.host-1.example"))
        two.found += found(ABROAD * BATCH, batch * BATCH + 1)
        two.answers.append(batch + 1)
        made.append((length(one.pack(live)), length(two.pack(live))))
    return made


async def crawl(url: str, pages: int, content: int) -> dict[str, float]:
    from silkline.crawl.connection import Wire
    from silkline.crawl.leader import Leader
    from silkline.crawl.messages import encoder, from_fetcher
    from silkline.kinds.site import plan_of  # so that an older checkout has it too
    from silkline.model.job import NewJob
    from silkline.model.kind import Context, KindSettings
    from silkline.model.spec import SiteSpec, validate
    from silkline.reading_marks import ReadingMarks
    from silkline.store import jobs
    from silkline.store.opening import open_database

    with tempfile.TemporaryDirectory() as folder:
        database = open_database(url)
        payload: dict[str, Any] = {"url": "https://www.host-1.example/", "scope": "any", "fetchers": 3}
        job = jobs.claim_one(database, "bench", "here", jobs.enqueue(database, NewJob("site", payload))[0].id)
        spec = validate(SiteSpec, payload)
        marks = Path(folder) / "marks"
        ReadingMarks.create(marks)
        settings = KindSettings(data=folder)
        context = Context(spec, NoOrders(), Progress(database, job), logging.getLogger("site"), settings, str(marks))
        leader = Leader(context, plan_of(spec, fetchers=3, concurrency=300), [payload["url"]])
        recorder = leader._recorder
        recorder.on_saved, recorder.live, recorder.in_flight = leader._saved, leader._show, leader._in_flight
        await recorder.open()
        await leader._plant_seeds()
        seats = [Sink(index, encoder().encode) for index in range(3)]
        leader._seats = list(seats)
        wires = [Wire(from_fetcher(), partial(leader.heard, seat), lambda: None) for seat in seats]
        sent = frames(pages, content)
        began, loop = time.process_time(), time.thread_time()
        for number, (batch, answer) in enumerate(sent, 1):
            wires[1].data_received(batch)
            wires[2].data_received(answer)
            if number * BATCH % CHECKPOINT == 0:
                await recorder.save()
        await recorder.save()
        loop, total = time.thread_time() - loop, time.process_time() - began
        assert recorder.stored == pages, recorder.stored
        recorder.close()
        database.close()
    return {"loop": loop, "writing": total - loop, "total": total}


def child(url: str, pages: str, content: str) -> None:
    import uvloop

    from silkline.kinds.site import calm_collector  # so that an older checkout has it too

    calm_collector()
    print(json.dumps(uvloop.run(crawl(url, int(pages), int(content)))))


def run_child(source: Path, url: str, options: argparse.Namespace) -> dict[str, float]:
    environment = {**os.environ, "PYTHONPATH": str(source / "src")}
    command = [sys.executable, "-P", __file__, "--child", url, str(options.pages), str(options.content)]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    sys.path.insert(0, str(ROOT))
    from tests.support.postgres import PostgresServer

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=6_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--content", type=int, default=0, help="bytes of Markdown of a page")
    parser.add_argument("--against", type=Path, help="another checkout of Silkline, measured in turn with this one")
    options = parser.parse_args()
    sources = {"": ROOT} | ({" (against)": options.against.resolve()} if options.against else {})
    rounds: dict[str, list[dict[str, float]]] = {}
    server = PostgresServer(fsync=True)
    try:
        for _ in range(options.rounds):
            for name, source in sources.items():
                with tempfile.TemporaryDirectory() as folder:
                    found = run_child(source, f"sqlite:///{folder}/silkline.db", options)
                rounds.setdefault(f"SQLite{name}", []).append(found)
                url = server.create_database()
                rounds.setdefault(f"PostgreSQL{name}", []).append(run_child(source, url, options))
                server.drop_database(url)
    finally:
        server.remove()
    print(f"{options.pages} pages; CPU-ms of the leader for a page that another fetcher fetched\n")
    print("| | messages | checkpoints | together | so at most |\n|---|---|---|---|---|")
    for name, several in rounds.items():
        best = min(several, key=lambda each: each["total"])
        loop, writing, total = (1000 * best[key] / options.pages for key in ("loop", "writing", "total"))
        print(f"| {name} | {loop:.3f} | {writing:.3f} | {total:.3f} | {1000 / total:,.0f} pages/s |")


if __name__ == "__main__":
    if len(sys.argv) == 5 and sys.argv[1] == "--child":
        child(*sys.argv[2:])
    else:
        main()
