"""A small sample site for the demo, for the web page when there are no jobs, and for tests. Imports no other folder.

About thirty pages of an invented lighthouse with the features of real sites: redirects and a redirect loop, broken
links, an endless calendar, tables and code, a PDF and images, a page made by a script, robots rules, sitemaps.
"""
