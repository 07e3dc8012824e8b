"""Turns bytes into facts. Pure functions: they open no socket, use no database and keep nothing.

`sniff` detects the type of a body. `html` parses a page: one parse of the DOM, after the checks of `bomb_guard`;
`page_facts` walks over the DOM. `html` calls `directives` for the robots tags, `fingerprint` for the hashes and
`content` for the Markdown. For `content`, `main_content` chooses the main content: `outline` makes groups of elements,
`block_features` describes them, `page_model` says which are content, with `neighbours` for a second look, `kept_notes`
adds footnotes, and `product` what only the JSON-LD says. `markdown` writes the Markdown; `tables`, `code_blocks`,
`definition_lists`, `footnotes` and `formulas` (with `mathml`) prepare their parts of the document for it, with the
marks of `markdown_marks`. `fields` reads the values that users name, with `structured` and `microdata` for structured
data and `field_values` for their types; `field_suggestions` proposes such fields. `sitemap`, `pdf` and `plain` parse
the other types. Time and memory are bounded for every input.
"""
