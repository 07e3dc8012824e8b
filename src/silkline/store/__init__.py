"""The only place that talks to SQLite or PostgreSQL. It stores facts and fences writes; it decides no policy.

`opening` opens one of the two; `statements` loads the named SQL of sql/*.sql; `jobs`, `urls`, `results`, `logs` and
`workers` are the verbs, one module for each noun, and serve both databases.
"""
