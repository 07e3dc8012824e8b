"""How a job lives.

1. Somebody stores it (`store.jobs.enqueue`): a row, `queued`. A bell rings.
2. `supervisor` has a free slot and claims it: `running`, the lease rises. Nobody else can own it now.
3. `launcher` has the fork server give birth to a runner; `runner_process` is our side of it. The runner is told
   the job and the lease over a socket, and starts.
4. While it runs: `heartbeat` renews the leases on a thread of its own; `output` carries what the tree prints to its log
   file, without ever blocking it; `limits` watches time, memory and progress; the supervisor passes on what people
   wish.
5. It ends. What is left of its tree is killed (`process_table`, `cgroup`); `runner_process` says how it ended;
   `model.job.decide` says what becomes of the job; `store.jobs.finish` writes that, fenced by the lease.
   If it died while it read something, the mark (`marks_files`) tells what: that is blamed, and read in isolation next
   time.
6. Whatever dies on the way: a dead runner is seen at once, a dead supervisor by the `watchdog` of another one, or by
   its own successor, which finds its lock free (`store.identity`). A supervisor that cannot reach the
   database kills its own children before anybody else may start them (`limits`).
"""
