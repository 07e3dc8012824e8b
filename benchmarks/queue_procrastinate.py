"""Procrastinate's side of benchmarks/queue.py: enqueue, and fetch_job + finish_job, on one connection.

That benchmark runs it in a separate environment: `python queue_procrastinate.py URL BATCH`. It prints the version of
Procrastinate, then reads orders such as `enqueue 100` from stdin, carries out each order and prints the seconds.
"""

import asyncio
import logging
import sys
import time
from importlib.metadata import version
from typing import Any

from procrastinate import App, PsycopgConnector
from procrastinate.jobs import Job, Status


def new_job() -> Job:
    arguments = {"url": "https://example.com/", "limit": 200}
    return Job(id=None, queue="default", lock=None, queueing_lock=None, task_name="site", task_kwargs=arguments)


async def carry_out(order: str, count: int, manager: Any, worker: int, batch: int) -> None:
    if order == "enqueue":
        for _ in range(count):
            await manager.defer_job_async(new_job())
    elif order == "enqueue-batches":
        for _ in range(count // batch):
            await manager.batch_defer_jobs_async([new_job() for _ in range(batch)])
    elif order == "work":
        for _ in range(count):
            job = await manager.fetch_job(queues=None, worker_id=worker)
            await manager.finish_job(job, status=Status.SUCCEEDED, delete_job=False)
    else:
        raise ValueError(order)


async def serve(url: str, batch: int) -> None:
    app = App(connector=PsycopgConnector(conninfo=url, min_size=1, max_size=1))
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        worker = await app.job_manager.register_worker()
        print(version("procrastinate"), flush=True)
        for line in sys.stdin:
            order, count = line.split()
            began = time.perf_counter()
            await carry_out(order, int(count), app.job_manager, worker, batch)
            print(time.perf_counter() - began, flush=True)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
