"""The process of one job attempt.

`server` is the fork server: it has loaded the imports and forks a new process for each attempt. `process` turns that
process into a runner: it gets its own session and its limits, and dies with its supervisor. `attempt` loads the job by
id and lease, runs the code of its kind, and ends with the exit code of the contract. `protocol` defines the messages
between supervisor and runner. `rescue` and `job_commands` take jobs from dead owners. `log_file` writes the
log file of a job.
"""
