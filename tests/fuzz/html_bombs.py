"""Small generators of large HTML pages: the same few fragments, repeated, nested and combined up to a size."""

from collections.abc import Callable
from random import Random

Bomb = Callable[[int], bytes]

# fmt: off
TAGS = (
    "a", "abbr", "address", "applet", "area", "article", "aside", "audio", "b", "base", "bdo", "big", "blockquote",
    "body", "br", "button", "caption", "center", "cite", "code", "col", "colgroup", "dd", "del", "details", "dfn",
    "dialog", "dir", "div", "dl", "dt", "em", "embed", "fieldset", "figcaption", "figure", "font", "footer", "form",
    "frame", "frameset", "h1", "h2", "h3", "h6", "head", "header", "hr", "html", "i", "iframe", "img", "input", "ins",
    "kbd", "label", "legend", "li", "link", "listing", "main", "map", "mark", "marquee", "math", "menu", "meta", "mi",
    "mtext", "nav", "nobr", "noembed", "noframes", "noscript", "object", "ol", "optgroup", "option", "p", "param",
    "picture", "plaintext", "pre", "q", "rb", "rp", "rt", "rtc", "ruby", "s", "samp", "script", "search", "section",
    "select", "small", "source", "span", "strike", "strong", "style", "sub", "summary", "sup", "svg", "table",
    "tbody", "td", "template", "textarea", "tfoot", "th", "thead", "time", "title", "tr", "tt", "u", "ul", "var",
    "video", "wbr", "xmp", "foreignObject", "desc", "annotation-xml",
)
# fmt: on
WORDS = "Some words of a sentence that is long enough to be taken for prose, and then a few more. "
FRAGMENTS = (
    "x",
    " ",
    "\n",
    WORDS,
    "&amp;",
    "&#x41;",
    "&notin",
    "`",
    "*",
    "_",
    "|",
    "\\",
    "<!-- c -->",
    "<br>",
    "<hr>",
    "<p>",
    "</p>",
    "<img src=x alt=y>",
    "<a href=/x>y</a>",
    "<a href=#x>y</a>",
    "<td>",
    "<tr>",
    "<td colspan=50 rowspan=50>x",
    "<table><tr><td>a<td>b</table>",
    "<table><tr><th>a<th>b<tr><td>x",
    "<li>",
    "<ul><li>x",
    "<ol start=99999999><li>x",
    "<dt>x<dd>y",
    "<pre>\n\n</pre>",
    "<pre><code class=language-py>x\ny\n</code></pre>",
    "<blockquote>x",
    "<h2>x</h2>",
    "<b>x",
    "<b class=x id=y>",
    "</b>",
    "<code>`</code>",
    "<meta name=robots content=noindex>",
    "<meta http-equiv=refresh content='1;url=/x'>",
    "<link rel=alternate hreflang=en href=/x>",
    "<base href=/y/>",
    "<title>x</title>",
    "<script type=application/ld+json>{}</script>",
    "<noscript>x</noscript>",
    "<template>",
    "<select><option>x",
    "<svg><title>x",
    "<math><mi>x",
    "<iframe src=/x>",
    "<div class='a b c comment'>",
    "<div style='display:none'>",
    "<p hidden>",
    "<time>x</time>",
    "</div>",
    "</a>",
    "</table>",
    "</ul>",
    "<figure><figcaption>x",
    "<article>" + WORDS,
)


def repeated(text: str) -> Bomb:
    return lambda size: (text * (size // max(1, len(text)) + 1))[:size].encode()


def around(before: str, text: str, after: str = "") -> Bomb:
    """`before` once, then `text` again and again."""
    return lambda size: before.encode() + repeated(text)(size) + after.encode()


def halves(first: str, second: str) -> Bomb:
    """Half of the page nests, the other half repeats inside of it: what costs depth times breadth shows here."""
    return lambda size: repeated(first)(size // 2) + repeated(second)(size // 2)


def _numbered(text: str) -> Bomb:
    return lambda size: "".join(text.replace("#", str(n)) for n in range(size // len(text))).encode()


def _table(rows_by: int, attributes: str) -> Bomb:
    def build(size: int) -> bytes:
        row = f"<tr>{f'<td {attributes}>x' * rows_by}"
        return ("<table>" + row * max(1, size // len(row)) + "</table>").encode()

    return build


def _long_cell(size: int) -> bytes:
    """One long cell, many short rows: a table that pads its columns has their product."""
    return ("<table><tr><td>" + "w " * (size // 4) + "<td>x" + "<tr><td>a<td>b" * (size // 28) + "</table>").encode()


def _wide_and_long(size: int) -> bytes:
    """One wide row, many short ones: a table that evens its rows out has their product."""
    return ("<table><tr>" + "<td>x" * (size // 10) + "<tr><td>a<td>b" * (size // 28) + "</table>").encode()


def _long_base(size: int) -> bytes:
    """Every link repeats a long base."""
    return (f"<base href='/{'b' * min(8_000, size // 2)}/'>" + "<a href=x>y</a>" * (size // 30)).encode()


def _long_tail(text: str) -> Bomb:
    return lambda size: f"<p>{WORDS}<a href='/{text * (size // len(text))}'>x</a>".encode()


def _ld(text: str) -> Bomb:
    return lambda size: f"<script type=application/ld+json>{text * (size // len(text))}</script>".encode()


BOMBS: dict[str, Bomb] = {
    "table of the issue": _table(20, "colspan=50 rowspan=50"),
    "wide spans": _table(1, "colspan=1000"),
    "tall spans": _table(40, "rowspan=65534"),
    "digits of spans": lambda size: b"<table><tr><td>a<td colspan=" + b"9" * size + b">b<tr><td>c<td>d</table>",
    "digits of a list": lambda size: b"<ol start=" + b"9" * size + b"><li>b</ol>",
    "nested tables": repeated("<table><tr><td>a<td>b"),
    "nested tables with two columns": repeated("<table><tr><th>a<th>b<tr><td>x"),
    "nested tables in columns": repeated("<table><tr><td>a<td>b<tr><td>x<td>"),
    "nested tables in cells": repeated("<table><tr><td>a</td><td>b</td><td>"),
    "long cell": _long_cell,
    "wide and long": _wide_and_long,
    "nested lists": repeated("<ul><li>x"),
    "nested numbered lists": repeated("<ol><li>x"),
    "nested lists, then lines": halves("<ul><li>", "x<br>"),
    "nested lists, then items": halves("<ul><li>", "<li>x"),
    "nested lists, then code": halves("<ul><li>", "<pre>\n\n\nx</pre>"),
    "nested lists, then a block": around("<ul><li>" * 500 + "<pre>", "\n"),
    "nested quotes": repeated("<blockquote>x"),
    "nested quotes, then lines": halves("<blockquote>", "x<br>"),
    "nested quotes, then paragraphs": halves("<blockquote>", "<p>x"),
    "a few quotes, then lines": around("<blockquote>" * 500, "x<br>"),
    "nested descriptions": repeated("<dl><dd>x"),
    "nested definitions": repeated("<dl><dt>x<dd>y"),
    "definitions": repeated("<dl><dt>x<dd>y<dd><p>z</dl>"),
    "nested formulas": repeated("<math><mrow><mi>x"),
    "formulas": repeated("<span class=katex><math alttext=x></math></span>"),
    "formulas in one element": around("<div class=katex-display>", "<math alttext=x></math>"),
    "formulas in scripts": around("<p>", "<script type=math/tex>x</script>"),
    "footnotes": _numbered("<a id=r# href=&num;n#>#</a><p id=n#>x<a href=&num;r#>1</a>"),
    "nested footnotes": _numbered("<sup id=r#><a href=&num;n#>1</a></sup><div id=n#><a href=&num;r#>1</a>"),
    "footnotes with one name": repeated("<a id=r href=#n>1</a><p id=n>x<a href=#r>1</a>"),
    "references in one element": around("<sup id=r>", "<a class=footnote href=#n>1</a>", "</sup><p id=n>x"),
    "tables in tables with headers": repeated("<table><tr><th>a<th>b<tr><td>1<td>"),
    "headings with anchors": around("<div id=x>", "<h2><a href=#y>#</a>x</h2>"),
    "a product": lambda size: (
        '<script type=application/ld+json>{"@type":"Product","description":"' + "&lt;b>x" * (size // 7) + '"}</script>'
    ).encode(),
    "a product with tables": lambda size: (
        '<script type=application/ld+json>{"@type":"Product","description":"'
        + "<table><tr><th>a<th>b<tr><td>x" * (size // 30)
        + '"}</script>'
    ).encode(),
    "many products": _ld('[{"@type":"Product"},'),
    "nested headings": repeated("<h1><div>x"),
    "nested links": repeated("<a href=/x><table><td>x"),
    "nested formatting": around("<p>" + "".join(f"<b id={n}>" for n in range(500)), "</p><p>x"),
    "misnested": repeated("<a><p><b></a>x"),
    "many attributes": lambda size: b"<p " + b" ".join(b"a%d=1" % n for n in range(size // 8)) + b">x",
    "same attribute": around("<p ", "a=1 "),
    "attributes on html": repeated("<html a=1 b=2>"),
    "new attributes on html": _numbered("<html a#=1>"),
    "new attributes on body": _numbered("<body a#=1>"),
    "many classes": around("<p class='", "nav ", f"'>{WORDS}"),
    "new classes": _numbered("<p class=c#-nav>x</p>"),
    "one long class": around("<p class='", "aB", f"'>{WORDS}"),
    "many ids": _numbered("<p id=#>x"),
    "entities": repeated("&amp;"),
    "half entities": repeated("&notin"),
    "number entity": around("&#", "9", ";"),
    "long base": _long_base,
    "long href": _long_tail("x"),
    "dots in href": _long_tail("../"),
    "escapes in href": _long_tail("%41"),
    "fragment": lambda size: f"<p>{WORDS}<a href='/x#{'f' * size}'>x</a>".encode(),
    "host labels": lambda size: f"<a href='https://{'ü.' * (size // 3)}example'>x</a>".encode(),
    "many hosts": _numbered("<a href=//ü#.example/>x</a>"),
    "permalinks": repeated("<a href=#x>¶</a>"),
    "many images": repeated("<img src=/x alt=y>"),
    "data image": around("<img src='data:", "x", "'>"),
    "srcset": around("<img srcset='", "x 1x, ", "'>"),
    "json-ld nested": _ld("["),
    "json-ld objects": _ld('{"a":'),
    "json-ld numbers": _ld("9"),
    "json-ld escapes": lambda size: _ld("\\ud800")(size),
    "json-ld equal keys": lambda size: (
        "<script type=application/ld+json>{" + '"a":1,' * (size // 6) + '"b":1}</script>'
    ).encode(),
    "json-ld article": lambda size: (
        '<script type=application/ld+json>[{"articleBody":"'
        + "x" * (size // 2)
        + '"}'
        + ",[]" * (size // 6)
        + "]</script>"
    ).encode(),
    "many json-ld": repeated("<script type=application/ld+json>{}</script>"),
    "metas": repeated("<meta name=robots content='noindex,'>"),
    "long meta": around("<meta name=robots content='", "noindex,", "'>"),
    "refresh": around("<meta http-equiv=refresh content='", "1;url=", "'>"),
    "many refreshes": repeated("<meta http-equiv=refresh content='1;url=/x'>"),
    "titles": repeated("<title>x</title>"),
    "svg titles": repeated("<svg><title>"),
    "comments": repeated("<!--->"),
    "open comment": around("<!--", "--!"),
    "doctypes": repeated("<!doctype html>"),
    "cdata": repeated("<svg><![CDATA["),
    "templates": repeated("<template>"),
    "closed templates": repeated("<template></template>"),
    "select": repeated("<select><option>x"),
    "ruby": repeated("<ruby><rb>x<rt>y"),
    "frameset": repeated("<frameset>"),
    "forms": repeated("<form><div>x"),
    "noscripts": repeated("<noscript>"),
    "scripts": repeated("<script>x</script>"),
    "open script": around("<script>", "<!--<script>"),
    "end tags": repeated("</p>"),
    "end tags of br": repeated("</br>"),
    "foster parents": around("<table>", "x<tr>"),
    "foster formatting": around("<table>", "<b>x<tr>"),
    "backticks": around(f"<p>{WORDS}<code>", "`"),
    "growing backticks": lambda size: (
        "<p>" + "".join(f"<strong>a</strong>b{'`' * n} " for n in range(1, int((2 * size) ** 0.5)))
    ).encode()[: 2 * size],
    "code with backticks": repeated("<code>`</code>x<b>y</b>z"),
    "open code marks": around("<p><b>a</b>b ", "`a ``b "),
    "stars": around(f"<p>{WORDS}", "*"),
    "underscores": around(f"<p>{WORDS}", "_a"),
    "brackets": around(f"<p>{WORDS}", "[]("),
    "less than": around(f"<p>{WORDS}", "<"),
    "pipes": around("<table><tr><td>a<td>", "|"),
    "spaces": repeated(" "),
    "lines": repeated("\n"),
    "tabs": around("<pre>", "\t"),
    "code lines": around("<pre>", "a\n"),
    "no-break spaces": around(f"<p>{WORDS}<b>x</b>", "&nbsp;"),
    "hidden": repeated("<p hidden>x"),
    "styles": repeated("<p style='display:none'>x"),
    "long style": around("<p style='", "display:", "'>x"),
    "cards": repeated(f"<div><a href=/x>{WORDS}</a></div>"),
    "articles": repeated(f"<article><h1>x</h1>{WORDS}{WORDS}{WORDS}</article>"),
    "nested articles": repeated(f"<article><h1>x</h1>{WORDS}"),
    "nested sections with prose": repeated(f"<div><p>{WORDS}</p>"),
    "deep, then strays": halves("<div>", "<a href=/x>y</a><br>"),
    "deep, then text": halves("<div>", "x "),
    "deep, then images": halves("<div>", "<img src=x>"),
    "deep inline": repeated("<span>x"),
    "deep inline, then links": halves("<span>", "<a href=/x>y</a>"),
    "links in one link": around("<a href=/x>", "<img src=y>"),
    "empty root": repeated("<div id=x><script>"),
    "custom elements": repeated("<x-y>"),
    "tag names": lambda size: b"<" + b"a-" * (size // 2) + b">x",
    "new tag names": _numbered("<a#>x"),
    "nul": repeated("\0"),
    "not utf-8": lambda size: b"\xff" * size,
    "utf-16": lambda size: ("<p>ä" * (size // 8)).encode("utf-16"),
    "iso-2022-jp": lambda size: b"<meta charset=iso-2022-jp>" + b"\x1b$B" * (size // 3),
    "gb18030": lambda size: b"<meta charset=gb18030>" + b"\x81\x30\x81\x30" * (size // 4),
    "meta charsets": repeated("<meta charset=x>"),
    "quotations in quotations after many groups": lambda size: (
        f"<blockquote><p>{WORDS}</p></blockquote>".encode()
        + _numbered("<p class=c#>x")(min(size // 2, 90_000))
        + b"<blockquote>" * 400
        + (" ".join(f"w{number:x}" for number in range(size // 12))).encode()
    ),
}


def random_bomb(random: Random) -> Bomb:
    """A bomb of some shape, from some fragments or tags."""

    def piece() -> str:
        if random.random() < 0.5:
            return random.choice(FRAGMENTS)
        tag = random.choice(TAGS)
        ending = random.choice(("", "", "x", f"x</{tag}>", f"</{tag}>", WORDS))
        attribute = random.choice(
            ("", "", " class=a", " href=/x", " id=q", " colspan=9", " rowspan=0", " start=-1", " open")
        )
        return f"<{tag}{attribute}>{ending}"

    pieces = ["".join(piece() for _ in range(random.choice((1, 1, 2, 3)))) for _ in range(3)]
    shape = random.randrange(5)
    if shape == 0:
        return repeated(pieces[0])
    if shape == 1:
        return halves(pieces[0], pieces[1])
    if shape == 2:
        return around(pieces[0] * random.choice((1, 10, 400)), pieces[1], pieces[2])
    if shape == 3:
        return lambda size: b"".join(repeated(each)(size // 3) for each in pieces)
    chosen = Random(random.random())
    return lambda size: "".join(chosen.choice(pieces) for _ in range(size // 20)).encode()[:size]
