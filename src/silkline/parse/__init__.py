"""Bytes in, facts out: pure functions that open no socket, see no database and keep nothing.

`sniff` says what a body is. A page goes through `html` (one parse of the DOM; `defuse` guards it, `harvest` walks it),
which asks `directives` for its robots tags, `fingerprint` for its hashes and `content` for its Markdown. There,
`article` finds the main content, `names` and `trim` take away what only stands near it, `tables` and `markdown` write
it down. `sitemap`, `pdf` and `plain` read the other kinds. Whatever comes in, time and memory are bounded.
"""
