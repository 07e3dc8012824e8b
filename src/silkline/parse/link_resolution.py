"""The canonical URLs of the links of a page. Most links need no parser, if `plain_links` is compiled."""

from silkline.model.url import UrlRules, canonical_base, canonical_links, origin_of

try:
    from silkline.parse.plain_links import plain_links
except ImportError:  # not compiled
    plain_links = None  # type: ignore[assignment]


def resolve(base: str, hrefs: list[str], rules: UrlRules) -> list[str | None]:
    """The same as `canonical_links`, in less than half of the time."""
    home = canonical_base(base)
    if plain_links is None or rules.trims or not home:
        return canonical_links(base, hrefs, rules)
    folder = home.partition("?")[0].rpartition("/")[0] + "/"
    found = plain_links(hrefs, origin_of(home), folder)
    others = [href for href, url in zip(hrefs, found, strict=True) if url is None]
    if not others:
        return found
    left = iter(canonical_links(base, others, rules))
    return [url if url is not None else next(left) for url in found]
