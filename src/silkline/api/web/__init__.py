"""The web page: rendered here, kept alive by events, usable without a mouse, on a phone, and in the dark.

Whatever was crawled is shown as text: templates escape everything, links are made for http(s) only, and the policy that
`security` sends with every answer lets a browser run nothing but the files in static/.
"""
