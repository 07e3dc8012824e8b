"""The kinds of jobs. `registry` knows every kind. The other modules are their code, which only a runner loads."""
