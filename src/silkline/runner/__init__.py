"""The process of one job attempt.

`server` is the fork server: it has loaded the imports and forks a new process for each attempt. `process` turns that
process into a runner: it gets its own session and its limits, and dies with its supervisor. `attempt` loads the job by
id and lease, runs the code of its kind, and ends with the exit code of the contract. `protocol` defines the messages
between supervisor and runner. `inline` runs an attempt in the process of the caller. `job_commands` carries out the
commands of users. `rescue` puts a job of a dead owner back, and `leftovers` kills the processes that a dead supervisor
left. `log_file` writes the log file of a job.
"""
