"""A shop of our own: 300 products on pages of their own, and lists of 20 of them. It counts the requests."""

import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PRODUCTS = 300
IN_A_LIST = 20
COLOURS = ("red", "green", "blue")


def price_of(number: int) -> float:
    return round(number * 13.37 + 0.99, 2)


def in_stock(number: int) -> bool:
    return number % 3 != 0


def shown_price(number: int) -> str:
    """In the notation of the shop: 1.234,56 €."""
    return f"{price_of(number):,.2f}".replace(",", "x").replace(".", ",").replace("x", ".") + " €"


def product(number: int) -> str:
    return f"""<html><head><title>Lamp {number}</title><script type="application/ld+json">{{"@type": "Product",
"sku": "L-{number:04}", "offers": {{"price": {price_of(number)}, "priceCurrency": "EUR"}}}}</script></head><body>
<nav><a href="/">Shop</a> <a href="/list/1">All lamps</a></nav><main><h1>Lamp {number}</h1>
<p class="price">{shown_price(number)}</p><p class="stock">{"In stock" if in_stock(number) else "Sold out"}</p>
<p class="colour">Colour: {COLOURS[number % 3]}</p><img src="/lamp.png" alt="Lamp {number}">
<p>Light for a desk, a shelf or a wall. Number {number} has a switch of its own and a long cable.</p></main>
<footer>Terms of sale, contact and imprint of the shop. Made for tests.</footer></body></html>"""


def listing(page: int) -> str:
    first = (page - 1) * IN_A_LIST + 1
    cards = "".join(
        f'<li class="card"><a class="name" href="/product/{n}">Lamp {n}</a><b class="price">{shown_price(n)}</b></li>'
        for n in range(first, min(first + IN_A_LIST, PRODUCTS + 1))
    )
    further = f'<a rel="next" href="/list/{page + 1}">Next</a>' if first + IN_A_LIST <= PRODUCTS else ""
    return f"<html><head><title>Lamps, page {page}</title></head><body><ul>{cards}</ul>{further}</body></html>"


class Shop:
    """The server. `requests` has the number of requests for each path."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        shop = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                shop.requests[self.path] += 1
                page = shop.page(self.path)
                self.send_response(200 if page else 404)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("X-Shop", "yes")
                self.send_header("Set-Cookie", "visitor=a-secret")
                self.end_headers()
                self.wfile.write((page or "").encode())

            def log_message(self, *_: object) -> None:
                """The tests do not print requests."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/"

    def page(self, path: str) -> str:
        kind, _, number = path.strip("/").partition("/")
        if path == "/":
            lists = "".join(f'<a href="/list/{n}">Page {n}</a>' for n in range(1, PRODUCTS // IN_A_LIST + 1))
            return f"<html><head><title>Shop</title></head><body>{lists}</body></html>"
        if number.isdecimal() and 1 <= int(number) <= PRODUCTS:
            return product(int(number)) if kind == "product" else listing(int(number)) if kind == "list" else ""
        return ""

    def __enter__(self) -> "Shop":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
