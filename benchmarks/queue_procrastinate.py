"""Procrastinate's side of benchmarks/queue.py: enqueue, fetch_job + finish_job on one connection, one after the other.

Run by that benchmark in an environment of its own: `python queue_procrastinate.py URL SINGLES BACKLOG BATCH`.
Prints jobs per second as JSON.
"""

import asyncio
import json
import sys
import time
from importlib.metadata import version

from procrastinate import App, PsycopgConnector
from procrastinate.jobs import Job, Status


def new_job() -> Job:
    arguments = {"url": "https://example.com/", "limit": 200}
    return Job(id=None, queue="default", lock=None, queueing_lock=None, task_name="site", task_kwargs=arguments)


async def measure(url: str, singles: int, backlog: int, batch: int) -> dict[str, float]:
    app = App(connector=PsycopgConnector(conninfo=url, min_size=1, max_size=1))
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        manager, speed = app.job_manager, {}

        began = time.perf_counter()
        for _ in range(singles):
            await manager.defer_job_async(new_job())
        speed["enqueue, one by one"] = singles / (time.perf_counter() - began)

        began = time.perf_counter()
        for _ in range(backlog // batch):
            await manager.batch_defer_jobs_async([new_job() for _ in range(batch)])
        speed["enqueue, in batches"] = backlog / (time.perf_counter() - began)

        worker = await manager.register_worker()
        began = time.perf_counter()
        for _ in range(singles):
            job = await manager.fetch_job(queues=None, worker_id=worker)
            await manager.finish_job(job, status=Status.SUCCEEDED, delete_job=False)
        speed["claim + finish, one by one"] = singles / (time.perf_counter() - began)
    return speed


if __name__ == "__main__":
    address, *counts = sys.argv[1:]
    print(json.dumps({"version": version("procrastinate"), "speed": asyncio.run(measure(address, *map(int, counts)))}))
