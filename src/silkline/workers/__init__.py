"""What a job can be. `registry` knows every kind; each other module here is one worker, loaded only by a runner."""
