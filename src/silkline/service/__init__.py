"""How a job lives.

1. A client stores the job (`store.jobs.enqueue`): a row with status `queued`. The database notifies the supervisors.
2. `job_loop` has a free slot. `supervisor` (the service) or `foreground_run` (one job, for `silkline crawl`) claims the
   job: the status becomes `running` and the lease rises. No other process can own the job now.
3. `launcher` asks the fork server for a runner; `runner_process` is the supervisor's side of it. The runner gets the id
   of the job and the lease over a socket, and starts.
4. While the job runs, `heartbeat` renews the leases in its own thread. `output` copies what the process tree prints to
   the log file and never blocks the tree. `limits` checks time, memory and progress. `job_loop` passes on wishes.
5. The attempt ends. What is left of its process tree is killed (`process_table`, `cgroup`). `runner_process` finds out
   how the attempt ended, `model.job.decide` decides the next status, and `store.jobs.finish` stores it, fenced by the
   lease. If the runner died while it read something, its mark (`marks_files`) names the input. The next attempt reads
   that input in an isolated process.
6. A dead runner is noticed at once. A dead supervisor is noticed by the `watchdog` of another supervisor, or by the
   next supervisor on the same machine, which finds the lock file unlocked (`store.identity`). A supervisor that cannot
   reach the database kills its own children before another supervisor may start their jobs (`limits`).
"""
