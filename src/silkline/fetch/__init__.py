"""The only place that opens sockets to the web. Sees no database and no HTML; every outcome is a value.

client.py makes one hop, redirects.py follows several, robots.py reads what a host asks of us. Towards a connection:
origin.py takes the URL apart, dns.py finds the addresses, guard.py judges them, handle.py and transport.py run libcurl,
response.py and decode.py turn what came back into a `Fetched` (silkline/model/fetched.py). settings.py has the limits.
"""
