"""Markdown of definition lists, footnotes, formulas, nested tables and figures, as generators of pages write them."""

import pytest

from silkline.model.page import Wanted
from silkline.parse import content
from silkline.parse.html import parse_page

URL = "https://a.example/dir/page"


def full(markup, **more):
    return parse_page(markup.encode(), URL, Wanted(content="full", **more)).markdown


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<dl><dt>Term<dd>One<dd>Two</dl>", "Term\n:   One\n:   Two"),
        ("<dl><dt>A<dd>x<dt>B<dt>C<dd>y</dl>", "A\n:   x\n\nB\n\nC\n:   y"),
        ("<dl><dt>A</dt><dd><p>x</p><p>y</p></dd></dl>", "A\n:   x\n\n    y"),
        ("<dl><dt>A<dd>x<pre>code</pre></dl>", "A\n:   x\n    ```\n    code\n    ```"),
        ("<dl><dt>A<dd>x<dl><dt>B<dd>y</dl></dl>", "A\n:   x\n\n    B\n    :   y"),
        ("<dl><div><dt>A<dd>x</div><div><dt>B<dd>y</div></dl>", "A\n:   x\n\nB\n:   y"),
        ("<blockquote><dl><dt>A<dd>x</dl></blockquote>", "> A\n>\n> :   x"),
        ("<dl><dd>only indented</dl>", "only indented"),
        ("<dl><dt>only a term</dl>", "only a term"),
        ("<table><tr><td>a<td><dl><dt>T<dd>d</dl></table>", "| a | T d |\n| --- | --- |"),
    ],
)
def test_definition_lists(markup, expected):
    assert full(markup) == expected


FOOTNOTES = {
    "Markdown and Kramdown": (
        "<p>Text<sup id=fnref:1><a href=#fn:1 class=footnote>1</a></sup> more.</p><div class=footnotes><ol>"
        "<li id=fn:1><p>The note. <a href=#fnref:1 class=reversefootnote>&#8617;</a></p></li></ol></div>"
    ),
    "Pandoc": (
        "<p>Text<a href=#fn1 class=footnote-ref id=fnref1 role=doc-noteref><sup>1</sup></a> more.</p>"
        "<section role=doc-endnotes><ol><li id=fn1><p>The note."
        "<a href=#fnref1 role=doc-backlink>&#8617;&#xfe0e;</a></p></li></ol></section>"
    ),
    "Sphinx": (
        "<p>Text<a class='footnote-reference brackets' href=#id2 id=id1 role=doc-noteref><span>[</span>1<span>]</span>"
        "</a> more.</p><aside class='footnote brackets' id=id2 role=doc-footnote><span class=label><span>[</span>"
        "<a href=#id1 role=doc-backlink>1</a><span>]</span></span><p>The note.</p></aside>"
    ),
    "older Sphinx": (
        "<p>Text<a class='footnote-reference brackets' href=#id2 id=id1>1</a> more.</p><dl class='footnote brackets'>"
        "<dt class=label id=id2><span class=brackets><a class=fn-backref href=#id1>1</a></span></dt>"
        "<dd><p>The note.</p></dd></dl>"
    ),
    "oldest Sphinx": (
        "<p>Text<a class=footnote-reference href=#id2 id=id1>[1]</a> more.</p><table class='docutils footnote' id=id2>"
        "<tr><td class=label><a class=fn-backref href=#id1>[1]</a></td><td>The note.</td></tr></table>"
    ),
    "DocBook": (
        "<p>Text<a href=#ftn.x class=footnote><sup class=footnote id=x>[1]</sup></a> more.</p>"
        "<div id=ftn.x class=footnote><p><a href=#x class=para><sup class=para>[1]</sup></a> The note.</p></div>"
    ),
    "MediaWiki": (
        "<p>Text<sup id=cite_ref-1 class=reference><a href=#cite_note-1>[1]</a></sup> more.</p><ol class=references>"
        "<li id=cite_note-1><span class=mw-cite-backlink><b><a href=#cite_ref-1>^</a></b></span> <span>The note.</span>"
        "</li></ol>"
    ),
    "by hand, with names of anchors": (
        "<p>Text<a name=r href=#n>[1]</a> more.</p><p><a name=n href=#r>[1]</a> The note.</p>"
    ),
    "brackets around the link": (
        "<p>Text<sup id=r>[<a href=#n>1</a>]</sup> more.</p><ol><li id=n>The note. <a href=#r>&#8617;</a></li></ol>"
    ),
}


@pytest.mark.parametrize("markup", FOOTNOTES.values(), ids=FOOTNOTES)
def test_footnotes(markup):
    assert full(markup) == "Text[^1] more.\n\n[^1]: The note."


def test_a_footnote_with_many_references():
    references = "".join(f"<p>T<a class=footnote-reference href=#n id=r{n}>4</a></p>" for n in range(9))
    back = ",".join(f"<a role=doc-backlink href=#r{n}>{n}</a>" for n in range(9))
    label = "<span class=label><span>[</span>4<span>]</span></span>"
    note = f"<aside class=footnote id=n>{label} <span class=backrefs>({back})</span><p>The note.</p></aside>"
    assert full(references + note) == "T[^4]\n\n" * 9 + "[^4]: The note."


def test_a_footnote_of_several_blocks_is_indented():
    note = "<ol><li id=n><p>One.</p><p>Two. <a href=#r>&#8617;</a></p></li></ol>"
    markup = f"<p>Text<sup id=r><a href=#n>a</a></sup></p>{note}"
    assert full(markup) == "Text[^a]\n\n[^a]: One.\n\n    Two."


def test_footnotes_of_two_chapters_have_different_labels():
    chapter = "<p>T<sup id=r@><a href=#n@>1</a></sup></p><ol><li id=n@>Note @ <a href=#r@>&#8617;</a></li></ol>"
    found = full(chapter.replace("@", "7") + chapter.replace("@", "8"))
    assert found == "T[^1]\n\n[^1]: Note 7\n\nT[^1-2]\n\n[^1-2]: Note 8"


def test_two_references_to_one_footnote():
    markup = (
        "<p>A<sup id=r1><a href=#n>1</a></sup> B<sup id=r2><a href=#n>1</a></sup></p>"
        "<ol><li id=n><a href=#r1>a</a> <a href=#r2>b</a> Note</li></ol>"
    )
    assert full(markup) == "A[^1] B[^1]\n\n[^1]: Note"


@pytest.mark.parametrize(
    "markup",
    [
        "<a href=#s1 id=t1>1</a> <div id=s1><h2><a href=#t1>1</a> Part</h2></div>",
        "<a href=#p12>12</a> <p id=p12>Twelfth paragraph</p>",
        "<sup><a href=#gone>1</a></sup> text",
        "<a href=/other#n>1</a><p id=n>text</p>",
    ],
)
def test_other_short_links_stay_links(markup):
    found = full(markup)
    assert "[^" not in found
    assert "](https://a.example/" in found


def test_footnotes_survive_the_choice_of_the_content():
    prose = "The old mill stands at the end of the valley, where the river turns to the north and the road ends. " * 3
    paragraphs = "".join(f"<p>{prose}<sup id=r{n}><a href=#n{n}>{n}</a></sup></p>" for n in range(1, 5))
    notes = "".join(f"<li id=n{n}>Source {n} of the story. <a href=#r{n}>&#8617;</a></li>" for n in range(1, 5))
    menu = "<nav><ul>" + "".join(f"<li><a href=/m{n}>Menu {n}</a>" for n in range(12)) + "</ul></nav>"
    markup = f"{menu}<main><h1>Mill</h1>{paragraphs}<section class=footnotes><ol>{notes}</ol></section></main>"
    found = parse_page(markup.encode(), URL, Wanted(content="markdown")).markdown
    text = parse_page(markup.encode(), URL, Wanted(content="text")).text
    for n in range(1, 5):
        assert f"Source {n} of the story." in text
        assert f"[^{n}]\n" in found
        assert f"[^{n}]: Source {n} of the story." in found
    assert "Menu 3" not in found


MATHML = "<mrow><mi>a</mi><mo>+</mo><msup><mi>b</mi><mn>2</mn></msup></mrow>"
ANNOTATED = f"<semantics>{MATHML}<annotation encoding=application/x-tex>a + b^2</annotation></semantics>"


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        (f"<p>x <math>{ANNOTATED}</math> y</p>", "x $a + b^2$ y"),
        (f"<p>x <math alttext='a_1 * b'>{MATHML}</math> y</p>", "x $a_1 * b$ y"),
        (f"<p>x <math>{MATHML}</math> y</p>", "x $a+b^{2}$ y"),
        (f"<math display=block>{ANNOTATED}</math>", "$$a + b^2$$"),
        (
            f"<p><span class=katex><span class=katex-mathml><math>{ANNOTATED}</math></span>"
            "<span class=katex-html aria-hidden=true><span>a</span><span>+b2</span></span></span></p>",
            "$a + b^2$",
        ),
        (
            f"<span class=katex-display><span class=katex><span class=katex-mathml><math>{ANNOTATED}</math></span>"
            "<span class=katex-html>a+b2</span></span></span>",
            "$$a + b^2$$",
        ),
        ("<p>x <script type=math/tex>a_1 < b</script> y</p>", "x $a_1 < b$ y"),
        ("<p><script type='math/tex; mode=display'>\\sum_i\nx_i</script></p>", "$$\\sum_i x_i$$"),
        (
            "<p>x <span class=MathJax_Preview>a1</span><span class=MathJax>a1</span>"
            "<script type=math/tex>a_1</script></p>",
            "x $a_1$",
        ),
        (
            f"<mjx-container display=true><mjx-math>a+b2</mjx-math><mjx-assistive-mml><math>{MATHML}</math>"
            "</mjx-assistive-mml></mjx-container>",
            "$$a+b^{2}$$",
        ),
        (
            "<p><span class=mwe-math-element><span class=mwe-math-mathml-inline><math><semantics><mi>x</mi>"
            "<annotation encoding=application/x-tex>{\\displaystyle x}</annotation></semantics></math></span>"
            "<img class=mwe-math-fallback-image-inline src=/x.svg alt=x></span></p>",
            "$x$",
        ),
        ("<p>x <img class=latex src=/i.png alt='x^2'></p>", "x $x^2$"),
        ("<p>x <span class='math notranslate'>\\(a_1\\)</span></p>", "x $a_1$"),
        ("<div class=math>\\[a_1\\]</div>", "$$a_1$$"),
        ("<p><span class=math>no formula_1</span></p>", "no formula_1"),
        ("<table><tr><td>a<td><math alttext='|x|'></math></table>", "| a | $\\vert x\\vert $ |\n| --- | --- |"),
        ("<p>It costs $5 or $6.</p>", "It costs $5 or $6."),
    ],
)
def test_formulas_are_written_once(markup, expected):
    assert full(markup) == expected


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("<mfrac><mn>1</mn><mn>2</mn></mfrac>", r"\frac{1}{2}"),
        ("<msqrt><mi>x</mi><mo>&#8722;</mo><mn>1</mn></msqrt>", r"\sqrt{x-1}"),
        ("<mroot><mi>x</mi><mn>3</mn></mroot>", r"\sqrt[3]{x}"),
        ("<msub><mi>x</mi><mi>i</mi></msub>", "x_{i}"),
        ("<munderover><mo>&#8721;</mo><mi>i</mi><mi>n</mi></munderover><mi>i</mi>", r"\sum_{i}^{n}i"),
        ("<mi>sin</mi><mi>&#960;</mi>", r"\mathrm{sin}\pi"),
        (
            "<mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>2</mn></mtd></mtr></mtable>",
            r"\begin{matrix} 1 & 2 \end{matrix}",
        ),
        ("<mtext>if so</mtext>", r"\text{if so}"),
        ("<mstrange><mi>x</mi></mstrange>", "x"),
    ],
)
def test_mathml_without_tex(inside, expected):
    assert full(f"<p><math>{inside}</math></p>") == f"${expected}$"


def test_formulas_in_text_and_html():
    markup = f"<p>x <math>{ANNOTATED}</math> and <script type=math/tex>c</script></p>".encode()
    assert parse_page(markup, URL, Wanted(content="text")).text == "x $a + b^2$ and $c$"
    html = parse_page(markup, URL, Wanted(content="html")).html
    assert "<math>" in html
    assert "<mi>b</mi>" in html
    assert r"and <span>\(c\)</span>" in html


def test_formulas_in_scripts_do_not_change_the_hash_of_a_page():
    markup = b"<p>x <script type=math/tex>a_1</script> y</p>"
    hashes = {parse_page(markup, URL, Wanted(content=content)).content_hash for content in ("none", "full", "markdown")}
    assert len(hashes) == 1


@pytest.mark.parametrize("content_", ["markdown", "text", "html"])
@pytest.mark.parametrize("formula", ["<script type=math/tex>c^2</script>", f"<math>{ANNOTATED}</math>"])
def test_the_choice_counts_the_text_with_its_formulas_as_they_are_written(monkeypatch, formula, content_):
    sizes = []

    def choose(body, url, size, choose=content.choose):
        sizes.append((size, len(body.text)))
        return choose(body, url, size)

    monkeypatch.setattr(content, "choose", choose)
    markup = f"<title>Squares</title><p>{'The square of it. ' * 20}{formula * 9}</p><noscript>No scripts.</noscript>"
    said = parse_page(markup.encode(), URL, Wanted(content=content_)).extraction
    assert [size for size, _ in sizes] == [length for _, length in sizes] != []
    assert said.kept > 0.95


INNER = "<table><tr><td>x<td>y<tr><td>z<td>w</table>"


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        (f"<table><tr><th>a<th>b<tr><td>1<td>{INNER}</table>", "| a | b |\n| --- | --- |\n| 1 | x, y; z, w |"),
        (f"<table><tr><td>menu<td>{INNER}</table>", "menu\n\n| x | y |\n| --- | --- |\n| z | w |"),
        (f"<table><tr><td>{INNER}<tr><td>{INNER.replace('x', 'v')}</table>", None),
        (f"<table><tr><th>a<th>b<tr><td>x y z w<td>{'<table><tr><td>' * 30}deep</table>", None),
    ],
)
def test_nested_tables_lose_no_word(markup, expected):
    found = full(markup)
    for word in "xyzw":
        assert word in found
    assert expected is None or found == expected


@pytest.mark.parametrize(
    "markup",
    [
        "<pre><code class='hljs python'>x = 1</code></pre>",
        "<pre class='sourceCode python'><code>x = 1</code></pre>",
        "<pre class='src src-python'>x = 1</pre>",
        "<div class='mw-highlight mw-highlight-lang-python'><pre>x = 1</pre></div>",
        "<pre class=EnlighterJSRAW data-enlighter-language=python>x = 1</pre>",
        "<pre data-lang='Python '>x = 1</pre>",
    ],
)
def test_more_ways_to_name_a_language(markup):
    assert full(markup) == "```python\nx = 1\n```"


@pytest.mark.parametrize("markup", ["<pre data-lang='two words'>x</pre>", "<pre class='code wide'>x</pre>"])
def test_what_is_no_language(markup):
    assert full(markup) == "```\nx\n```"


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        (
            "<figure><img src=/i.png alt=Mill><figcaption>The <b>old</b> mill</figcaption></figure><p>Text</p>",
            "![Mill](https://a.example/i.png)\n\nThe **old** mill\n\nText",
        ),
        (
            "<figure><picture><source srcset=/i.webp><img src=/i.png alt=Mill></picture>"
            "<figcaption>Mill</figcaption></figure>",
            "![Mill](https://a.example/i.png)\n\nMill",
        ),
        ("<figure><pre>x</pre><figcaption>Listing 1</figcaption></figure>", "```\nx\n```\n\nListing 1"),
        (
            "<figure><blockquote><p>Words</p></blockquote><figcaption>A writer</figcaption></figure>",
            "> Words\n\nA writer",
        ),
    ],
)
def test_figures_keep_their_captions(markup, expected):
    assert full(markup) == expected


def test_marks_in_a_page_mean_nothing():
    assert full("<p>a\ufdd0b \ufdd31\ufdd4 c</p>") == "ab 1 c"


@pytest.mark.parametrize("mark", ["\ufdd30\ufdd4", "&#xFDD3;0&#64980;"])
def test_a_page_cannot_repeat_a_formula_with_marks(mark):
    formula = f"<p><math alttext='{'x' * 9_000}'><mi>x</mi></math></p>"
    found = full(f"<p>Words.</p>{formula}<p>{f'{mark} ' * 500}</p><p><img alt='{mark}' src=a.png></p>")
    assert found.count("x" * 9_000) == 1
    assert len(found) < 10_000


def test_titles_of_links_only_on_demand():
    markup = b"<p><a href=/b title=Tip>x</a></p>"
    assert '"Tip"' not in parse_page(markup, URL, Wanted(content="markdown")).markdown
    assert '"Tip"' in parse_page(markup, URL, Wanted(content="markdown", link_titles=True)).markdown


@pytest.mark.parametrize(
    ("markup", "headings", "anchors"),
    [
        ("<h1 id=a>Learn C#</h1>", [(1, "Learn C#")], ["a"]),
        ("<h2><a href=#b>#</a> First</h2>", [(2, "First")], ["b"]),
        ("<h2 id=c>Second<a href=#c class=headerlink>\u00b6</a></h2>", [(2, "Second")], ["c"]),
        ("<section id=d><h2>Third \U0001f517</h2></section>", [(2, "Third")], ["d"]),
        ("<div id=e><p>x</p><h2>Fourth</h2></div>", [(2, "Fourth")], [""]),
        ("<h2><a name=f></a>Fifth</h2>", [(2, "Fifth")], ["f"]),
        ("<section id=g><span id=index-1></span><h2>Sixth</h2></section>", [(2, "Sixth")], ["g"]),
        ("<footer><h2>Contact</h2></footer><div role=navigation><h3>Menu</h3></div>", [], []),
    ],
)
def test_headings_and_their_anchors(markup, headings, anchors):
    page = parse_page(markup.encode(), URL, Wanted(outline=True))
    assert page.headings == headings
    assert page.anchors == anchors


def test_an_entry_that_is_only_a_formula_stays():
    prose = "The old mill stands at the end of the valley, where the river turns to the north and the road ends. " * 3
    entries = "<ul><li><script type=math/tex>a_1</script></li><li><script type=math/tex>b_2</script></li></ul>"
    page = parse_page(f"<main><p>{prose}</p>{entries}<p>{prose}</p></main>".encode(), URL, Wanted(content="markdown"))
    assert "- $a_1$\n- $b_2$" in page.markdown
