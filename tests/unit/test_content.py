"""The main content of a page: what belongs to it stays, what only stands near it goes."""

import json

import pytest

from silkline.model.page import Wanted
from silkline.parse.block_features import words
from silkline.parse.html import parse_page

URL = "https://a.example/dir/page"
PROSE = [
    "The harbour was quiet that morning, and the nets hung drying between the poles along the quay.",
    "Nobody had expected the letter, least of all the harbour master, who read it twice before he spoke.",
    "By noon the news had reached the market, where it changed a little with every stall it passed.",
    "In the evening the council met, argued for three hours, and agreed on nothing but the date of the next meeting.",
]
ARTICLE = "".join(f"<p>{sentence} {sentence}</p>" for sentence in PROSE)
LEAD = "This is the story of a week in a small town."
HEADLINE = "<h1>The letter that came by sea</h1>"
TITLE = "<title>The letter that came by sea - Harbour News</title>"


def main(markup, content="markdown"):
    page = parse_page(f"{TITLE}{markup}".encode(), URL, Wanted(content=content))
    return page.markdown or page.text


def assert_whole(found):
    for sentence in PROSE:
        assert sentence in found


@pytest.mark.parametrize(
    "around",
    [
        "<nav><a href=/1>Sports</a></nav>{}",
        "<header><a href=/>Harbour News</a><p>Sports and weather, every day anew for you</p></header><main>{}</main>",
        "<header><nav><a href=/>Harbour News</a> <a href=/s>Sports and weather</a></nav></header><main>{}</main>",
        "<main>{}</main><aside>Sports results</aside><footer>Sports desk</footer>",
        "<div class=site-menu>Sports</div><div>{}</div>",
        "<div id=wrap><div id=content>{}</div><div class=sidebar><ul><li><a href=/1>Sports are on every channel</a>"
        "</ul></div></div>",
        "<article>{}</article><div class=comments><p>I never liked Sports, and here we see why that is.</p></div>",
        "<article>{}<div class='share-buttons'>Sports</div></article>",
        "<article>{}<ul><li><a href=/1>Sports one</a><li><a href=/2>Sports two</a></ul></article>",
        "<article>{}<h2>Sports</h2><ul><li><a href=/1>One more</a><li><a href=/2>And two</a></ul></article>",
        "<article>{}<p><a href=/1>Sports: read all about it in our magazine</a></p></article>",
        "<article>{}<form><p>Sports newsletter, twice a week for free in your box</p></form></article>",
        "<article>{}<div class='newsletter-box'><p>Get Sports news in your mail every morning.</p></div></article>",
        "<article>{}<figure><img src=/i.png alt=Boat><figcaption>Photo: Sports Agency</figcaption></figure></article>",
        "<article><span class=byline>Sports desk</span>{}</article>",
        "<article>{}</article><div role=complementary>Sports</div><p style='display:none'>Sports</p>",
        "<div><div>{}<a href=/list>Back to Sports</a></div></div>",
        "<table><tr><td><a href=/1>Sports</a><br><a href=/2>Weather</a></td><td>{}</td></tr></table>",
        "<article>{}<a href=/other><h3>Sports today</h3><p>A teaser for another page of some length</p></a></article>",
    ],
)
def test_what_stands_near_the_article_goes(around):
    found = main(around.format(HEADLINE + ARTICLE))
    assert_whole(found)
    assert "Sports" not in found


@pytest.mark.parametrize(
    ("kept", "inside"),
    [
        ("# The letter that came by sea", HEADLINE + ARTICLE),
        ("a week in a small town", f"{HEADLINE}<div class=lead>{LEAD}</div><div>{ARTICLE}</div>"),
        ("a week in a small town", f"<header>{HEADLINE}<p>{LEAD}</p></header><div>{ARTICLE}</div>"),
        ("What the letter said", HEADLINE + ARTICLE + "<h2>What the letter said</h2><p>Nothing new.</p>" + ARTICLE),
        ("second point", ARTICLE + "<ul><li>A first point<li>A second point</ul>" + ARTICLE),
        ("| 1 | 2 |", ARTICLE + "<table><tr><th>a<th>b<tr><td>1<td>2</table>" + ARTICLE),
        ("```\nprint(1)\n```", ARTICLE + "<div class=code-toolbar><pre>print(1)</pre></div>" + ARTICLE),
        ("![A boat](https://a.example/i.png)", ARTICLE + "<figure><img src=/i.png alt='A boat'></figure>" + ARTICLE),
        ("[the archive](https://a.example/archive)", ARTICLE + "<p>See <a href=/archive>the archive</a> for more.</p>"),
        ("> Quiet", ARTICLE + "<blockquote>Quiet</blockquote>" + ARTICLE),
    ],
)  # fmt: skip
def test_what_belongs_to_the_article_stays(kept, inside):
    found = main(f"<nav><a href=/1>Sports</a></nav><main><article>{inside}</article></main><footer>End</footer>")
    assert_whole(found)
    assert kept in found


def test_names_that_cover_the_whole_article_say_nothing():
    found = main(f"<div class='page has-sidebar'><div class='comments-live'>{HEADLINE}{ARTICLE}</div></div>")
    assert_whole(found)


def test_an_article_without_paragraphs():
    found = main(f"<div id=top><a href=/>Home</a></div><div id=text>{'<br><br>'.join(PROSE)}</div>")
    assert_whole(found)
    assert "Home" not in found


def test_a_page_of_links_keeps_its_links():
    links = "".join(f"<li><a href=/{number}>Thing number {number}</a>" for number in range(5))
    found = main(f"<nav><a href=/home>Home</a></nav><h1>All things</h1><ul>{links}</ul><footer>End</footer>")
    assert found.startswith("# All things\n\n- [Thing number 0](https://a.example/0)\n- [Thing number 1]")
    assert "Home" not in found


def test_a_page_of_previews_keeps_their_headings():
    previews = "".join(
        f"<div class=item><h3><a href=/{number}>Boat {number}</a></h3><p>{PROSE[0]}</p></div>" for number in range(4)
    )
    found = main(f"<main><h1>Boats</h1>{previews}</main>")
    assert found.count(PROSE[0]) == 4
    assert "### [Boat 3](https://a.example/3)" in found


def test_a_table_that_lays_out_the_page():
    middle = HEADLINE + "<br><br>".join(PROSE * 2)
    cells = f"<td>Left column<ul><li>Weather</ul></td><td>{middle}</td><td>Right column</td>"
    found = main(f"<table><tr><td colspan=3>Harbour News</td></tr><tr>{cells}</tr></table>")
    assert_whole(found)
    assert "|" not in found


def test_a_table_with_one_long_cell_stays_whole():
    rows = f"<tr><th>Name<th>Meaning<tr><td>harbour<td>{PROSE[0]}<tr><td>quay<td>A wall</table>"
    assert "| quay | A wall |" in main(f"<main><h1>Words</h1><table>{rows}</table></main>")


def test_short_lines_are_content_too():
    lines = "".join(f"<div>Short line {number}</div>" for number in range(10))
    assert "Short line 9" in main(f"<div class=menu>Menu</div><div class=poem>{lines}</div>")


def test_a_page_that_scripts_build_gives_the_article_of_its_metadata():
    body = "\n\n".join(PROSE)
    data = json.dumps({"@graph": [{"@type": "NewsArticle", "articleBody": body}]})
    markup = f"<script type=application/ld+json>{data}</script><div id=root>Loading</div>"
    assert main(markup) == body
    assert main(markup, "text") == body
    assert main(f"{markup}<article>{ARTICLE}</article>") != body


def teaser(**choice: tuple[str, ...]):
    article = "One sentence of the article. " * 60
    data = json.dumps({"@type": "Article", "articleBody": article})
    markup = f"<body><div class=menu>{'Menu entry. ' * 1_000}</div><p>A teaser.</p>"
    markup = f"<script type=application/ld+json>{data}</script>{markup}"
    return parse_page(markup.encode(), URL, Wanted(content="markdown", **choice)), article


def test_an_article_of_the_metadata_is_a_share_of_all_visible_text():
    page, article = teaser(drop=(".menu",))
    assert page.extraction.rule == "metadata"
    assert page.extraction.kept == pytest.approx(len(article) / 12_000, rel=0.01)


def test_an_article_of_the_metadata_does_not_replace_what_the_user_keeps():
    page, _ = teaser(keep=("p",))
    assert page.markdown == "A teaser."
    assert page.extraction.rule == "keep"


@pytest.mark.parametrize("content", ["markdown", "text", "full"])
def test_a_page_without_text_gives_nothing(content):
    assert main("<body></body>", content) == ""
    assert main("<frameset><frame src=/x></frameset>", content) == ""


@pytest.mark.parametrize("content", ["markdown", "text"])
def test_a_short_page_is_its_own_content(content):
    assert "Not much here" in main("<p>Not much here.</p>", content)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("articleBody", ["article", "body"]),
        ("article-body", ["article", "body"]),
        ("share_buttons", ["share", "buttons"]),
        ("SHARE", ["share"]),
        ("shareholder", ["shareholder"]),
        ("HTMLBox2", ["html", "box"]),
        ("", []),
    ],
)
def test_the_words_of_a_class(name, expected):
    assert words(name) == expected
