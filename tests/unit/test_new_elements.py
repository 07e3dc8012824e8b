"""Elements that are put into a document have hashes of their own, so that dictionaries of them take linear time."""

import pytest
from turbohtml import parse

from silkline.parse.code_blocks import tidy_code
from silkline.parse.definition_lists import tidy_definition_lists
from silkline.parse.footnotes import find_footnotes, tidy_footnotes
from silkline.parse.formulas import keep_tex_scripts, take_out
from silkline.parse.new_elements import NewElements

NUMBER = 3_000


def notes(document):
    found = find_footnotes(document)
    assert found is not None
    tidy_footnotes(found)


def tex_scripts(document):
    keep_tex_scripts(document.find_all("script"))


@pytest.mark.parametrize(
    ("html", "put_in", "tag"),
    [
        ("<math><mi>a</mi></math>", take_out, "span"),
        ("<p><script type='math/tex'>x</script></p>", tex_scripts, "span"),
        ("<dl><dt>a<dd>b</dl>", tidy_definition_lists, "ol"),
        ("<pre class=python>x</pre>", tidy_code, "code"),
        ("<p><a id=r{0} href=#n{0}>1</a></p><div id=n{0}><a href=#r{0}>1</a> x</div>", notes, "ol"),
    ],
)
def test_inserted_elements_have_different_hashes(html, put_in, tag):
    document = parse("<body>" + "".join(html.format(number) for number in range(NUMBER)))
    put_in(document)
    found = document.find_all(tag)
    assert len(found) == NUMBER
    assert len({hash(element) for element in found}) > 0.9 * NUMBER


def test_new_elements_are_empty_and_all_the_same():
    new = NewElements('<ol start="10"></ol>')
    made = [new.next() for _ in range(50)]
    assert {(each.tag, each.attr("start"), each.inner_html) for each in made} == {("ol", "10", "")}
    assert len({hash(element) for element in made}) == 50
