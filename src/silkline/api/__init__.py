"""REST, events and the web page, in a process of their own. It shares nothing with the supervisor but the database.

How a request travels: `security.Gate` asks whether it may come in at all (host, token, origin), `body_limits.BodyLimit`
counts what it brings; a route in `routes/` or `web/` parses it, calls one function and renders the answer (`views`).
What goes wrong becomes a problem document (`problems`). Store calls are plain synchronous code, so routes that make
them are plain functions, which the framework runs in a thread pool; only `events` lives on the event loop.

A crawl never runs here: posting a job stores it, and a supervisor takes it from there.
"""
