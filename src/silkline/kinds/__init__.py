"""What a job can be. `registry` knows every kind; the other modules are their code, loaded only by a runner."""
