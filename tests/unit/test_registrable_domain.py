"""The registrable domain of a host, by the public suffix list."""

import idna
import pytest
import tldextract

from silkline.crawl.registrable_domain import _rules, domain_of


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("a.b.example.com", "example.com"),
        ("example.com:8080", "example.com"),
        ("example.com.", "example.com"),
        ("www.example.co.uk", "example.co.uk"),
        ("co.uk", "co.uk"),
        ("x.blogspot.com", "blogspot.com"),
        ("a.b.c.ck", "b.c.ck"),
        ("a.www.ck", "www.ck"),
        ("a.b.xn--55qx5d.cn", "b.xn--55qx5d.cn"),
        ("127.0.0.1:80", "127.0.0.1:80"),
        ("[::1]:80", "[::1]:80"),
        ("localhost", "localhost"),
        ("a..com", "a..com"),
        ("a.xn--.com", "xn--.com"),
    ],
)
def test_registrable_domains(host: str, domain: str) -> None:
    assert domain_of(host) == domain


def test_every_rule_of_the_list_means_what_its_own_reader_says() -> None:
    reader = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
    assert len(_rules()) > 5_000
    for rule in _rules():
        suffix = rule.lstrip("!").replace("*.", "any.")
        written = ".".join(label if label.isascii() else idna.encode(label).decode() for label in suffix.split("."))
        for host in (written, f"a.{written}", f"b.a.{written}"):
            assert domain_of(host) == (reader(host).top_domain_under_public_suffix or host)
