"""The web page: rendered on the server and updated by events. It works with the keyboard, on phones, and in dark mode.

Crawled data is always shown as text: templates escape everything, only http(s) URLs become links, and the policy that
`request_gate` sends with every answer allows a browser to run only the files in static/.
"""
