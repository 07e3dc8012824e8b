"""The only place that opens sockets to the web. It uses no database and parses no HTML; every outcome is a value.

client.py makes one request, robots.py fetches and applies robots.txt. The steps of a
connection: origin.py parses the URL, dns.py resolves the host, guard.py checks the addresses, handle.py and
transport.py run libcurl, response.py and decode.py turn the response into a `Fetched` (silkline/model/fetched.py).
settings.py has the limits.
"""
