"""REST, events and the web page, in a process of their own. It shares only the database with the supervisor.

The path of a request: `request_gate.RequestGate` checks host, token and origin. `body_limits.BodyLimit` limits its
size. A route in `routes/` or `web/` parses it, calls one function and returns an answer (`answer_models`, made by
`views`). Every error becomes a problem document (`problems`). Calls of the store are synchronous, so routes
that make them are plain functions, which the framework runs in a thread pool. Only `events` runs on the event loop.

A crawl never runs here: the API stores a job, and a supervisor runs it.
"""
