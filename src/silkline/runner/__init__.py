"""The process of one job attempt.

`server` is the fork server: it has the imports loaded and gives birth to a fresh process for each attempt. `process`
turns that process into a runner: a session of its own, dead with its supervisor, within its limits. `attempt` loads the
job by id and lease, runs its code, and leaves with the exit code of the contract. `protocol` is what supervisor and
runner say to each other.
"""
