"""A small web site of our own words, for the demo, the web page's empty state, and the tests. Imports nothing of ours.

About thirty pages of a lighthouse that does not exist, with what real sites have: redirects and a loop of them, broken
links, a calendar without end, tables and code, a PDF and pictures, a page made by a script, robots rules, sitemaps.
"""
