"""Inputs that once took quadratic time: each is done with in a few seconds of CPU, in a limited process."""

import resource
import subprocess
import sys

import pytest

CPU_SECONDS = 10  # before, each of these took more than twenty
CASES = {
    "a cookie of backslashes": """
from silkline.api.auth import _session_in
assert _session_in('silkline_session="' + '\\\\' * 60_000 + '"') == ""
assert _session_in("a=b; silkline_session=" + "x" * 43 + "; c=d") == "x" * 43
""",
    "a search for a text that fits almost everywhere": """
import tempfile
from silkline.model.job import NewJob
from silkline.store import jobs, logs
from silkline.store.opening import open_database
with tempfile.TemporaryDirectory() as folder:
    database = open_database(f"sqlite:///{folder}/silkline.db")
    url = "https://a.example/" + "a" * 8_000
    new = NewJob("page", {"url": url}, request_url=url, paused=True)
    ids = [jobs.enqueue(database, new)[0].id for _ in range(1_500)]
    assert jobs.search(database, "a" * 499 + "b") == []
    assert len(jobs.search(database, "A" * 499, wanted=3)) == 3
    logs.append(database, [logs.NewLine(ids[0], 1, "info", "a" * 16_000 + "%_", database.now())] * 1_500)
    assert logs.search(database, ids[0], text="a" * 199 + "b") == []
    assert len(logs.search(database, ids[0], text="A%_", wanted=3)) == 3
    database.close()
""",
    "a page of an external worker with very many names": """
from datetime import UTC, datetime
from silkline.api.web.field_table import fields_of_page
from silkline.api.web.job_pages import content_of
from silkline.store.results import Result
rows = [{f"n{row}_{number}": 1 for number in range(2_900)} for row in range(100)]
data = {"rows": rows, **{f"n{number}": "x" for number in range(100_000)}}
result = Result(1, "job", 1, None, "https://a.example/", data, True, {}, datetime.now(UTC))
shown = fields_of_page(result)
assert (len(shown["field_rows"]), len(shown["field_names"]), shown["more_fields"]) == (100, 100, 289_900)
assert len(content_of(result)["facts"]) == 500
""",
    "spaces in a Content-Type": """
from silkline.fetch.response import _CHARSET
spaces = " " * 250_000
for value in (f"charset={spaces};", f"charset{spaces}", f"charset='{spaces}'", 'charset=";' * 30_000):
    assert _CHARSET.search("text/html; " + value) is None
assert _CHARSET.search('text/html; charset = " UTF-8 "')[1] == "UTF-8"
""",
    "long URLs and patterns of robots.txt that are almost in them": """
from silkline.fetch.robots import read
rules = [f"disallow: /*{'a' * at}b{'a' * (97 - at)}" for at in range(90, 1, -1) for _ in range(11)]
rules = [f"{rule}{'a' * (number % 11)}" for number, rule in enumerate(rules)]
found = read(("user-agent: *\\n" + "\\n".join(rules) + "\\nallow: /$\\ndisallow: /").encode(), 0)
for number in range(300):
    assert not found.allows("https://e.example/" + "a" * 8_100 + f"/{number}")
groups = (
    [f"allow: /*{'a' * 44}b{'a' * 44}*z{number}" for number in range(500)],
    [f"allow: /*{'a' * 600}b{'a' * 600}*z{number}" for number in range(300)],
    [f"allow: /*{'a' * 3_000}b{'a' * (3_000 + number)}" for number in range(80)],
    [f"allow: /*ab*z{number}" for number in range(500)],
    [f"allow: /*?aaaa={number}" for number in range(1_000)],
)
for rules in groups:
    found = read(("user-agent: *\\n" + "\\n".join(rules)).encode(), 0)
    for size in (1_700, 2_400, 8_000):
        for number in range(20):
            assert found.allows("https://e.example/" + "a" * size + f"b/?={number}")
""",
    "hosts with thousands of labels": """
from silkline.crawl.registrable_domain import domain_of
for number in range(200):
    assert domain_of("a." * 4_000 + f"site{number}.co.uk") == f"site{number}.co.uk"
    assert domain_of("xn--a." * 1_000 + f"site{number}.com:8080") == f"site{number}.com"
""",
    "backslashes before code and raw tags": """
from silkline.parse.markdown import _tidy
for text in ("\\\\" * 4_000_000 + "`", ("\\\\" * 999 + "`") * 4_000, "\\\\_" * 2_000_000, "\\\\<strong>" * 300_000):
    assert _tidy("a </em>" + text, [])[:3] == "a *"
assert _tidy("a</em>" + "`" * 2_000_000 + "\\\\<em>", []).startswith("a*`")
assert _tidy("".join("`" * number + " x</em> " for number in range(3_000)), []).startswith("x*")
""",
    "tags that never end": """
from silkline.parse.bomb_guard import defused
defused(b"<b " * 60_000)
defused(b"<p>" + b"<b>" * 100_000 + b"</b " * 250_000)
""",
    "attributes of elements that exist once": """
from silkline.model.page import Wanted
from silkline.parse.html import parse_page
for name in (b"body", b"HTML"):
    for quoted in (b"", b'x=">" ', b"x='>' ", b'x = ">" y=">" '):
        tags = [
            b"<" + name + b" " + quoted + b" ".join(b"a%d=1" % n for n in range(start, start + 40_000)) + b">"
            for start in (0, 40_000)
        ]
        page = parse_page(b"".join(tags) + b"<p>Words <a href=/b>b</a>", "https://a.example/", Wanted())
        assert [link.url for link in page.links] == ["https://a.example/b"]
""",
    "code blocks below an element with endless classes": """
from silkline.model.page import Wanted
from silkline.parse.html import parse_page
classes, blocks = b"word " * 100_000, b"<pre><code>x = 1</code></pre>" * 15_000
body = b'<div class="' + classes + b'">' + blocks + b"</div>"
page = parse_page(body, "https://a.example/", Wanted(content="markdown"))
assert "x = 1" in page.markdown
""",
    "nested definition lists, formulas and notes": """
from silkline.model.page import Wanted
from silkline.parse.html import parse_page
units = (
    b"<dl><dt>x<dd>y", b"<math><mrow>", b"<math alttext=a>", b"<span class=katex><math alttext=b>", b"<div class=math>",
    b"<table><tr><th>a<th>b<tr><td>", b"<a id=r href=#n>1</a><p id=n><a href=#r>1</a>", b"<section id=a><h2>x",
    b"<span id=n><a name=r href=#n class=footnote>1</a>", b"<mjx-container><math><mi>x</math>",
)
for unit in units:
    page = parse_page(unit * (80_000 // len(unit)), "https://a.example/", Wanted(content="full", outline=True))
    assert page.content_hash
wide = b"<sup id=s class=footnote>" + b"<a class=footnote href=#n>1</a>" * 6_000 + b"</sup><p id=n>x<a href=#s>1</a>"
assert parse_page(wide, "https://a.example/", Wanted(content="full")).markdown.count("[^1]") > 5_000
wide = b"<div id=x>" + b"<i></i>" * 60_000 + b"<h2>x</h2>" * 500
assert len(parse_page(wide, "https://a.example/", Wanted(outline=True)).anchors) == 500
""",
    "runs of backticks in addresses": """
from silkline.model.page import Wanted
from silkline.parse.html import parse_page
ticks, words = b"`" * 6_000, b"word " * 160_000
for link in (b'<a href="mailto:' + ticks + b'">t</a>', b'<a href="/x" title="' + ticks + b'">t</a>'):
    page = parse_page(b"<p>" + link + b" a<b>.c.</b>d</p><p>" + words, "https://a.example/", Wanted(content="full"))
    assert "a**.c.**d" in page.markdown
runs = b"".join(b"<a href='tel:" + b"`" * n + b"'>t</a>" for n in range(1, 1_500))
page = parse_page(b"<p>" + runs + b" a<b>.c.</b>d</p>", "https://a.example/", Wanted(content="full"))
assert "a**.c.**d" in page.markdown
""",
    "line breaks without end": """
from silkline.model.page import Wanted
from silkline.parse.html import parse_page
for unit in (b"<br>", b"<br> ", b"<br><i></i>", b"<br><!--x-->", b"<b><br></b>"):
    for content in ("markdown", "full", "text"):
        page = parse_page(b"<p>one" + unit * 60_000 + b"two</p>", "https://a.example/", Wanted(content=content))
        assert (page.markdown or page.text).split()[0] == "one" and (page.markdown or page.text).split()[-1] == "two"
page = parse_page(b"<p>" + b"line<br>" * 5_000, "https://a.example/", Wanted(content="full"))
assert page.markdown.count("line") == 5_000 and page.markdown.count("\\n") == 4_999
""",
    "the same attributes in UTF-16 with a byte-order mark": """
from silkline.model.page import Wanted
from silkline.parse.html import parse_page
for name in ("body", "HTML"):
    tags = [
        "<" + name + " " + " ".join(f"a{n}=1" for n in range(start, start + 40_000)) + ">" for start in (0, 40_000)
    ]
    for mark, encoding in ((b"\\xff\\xfe", "utf-16le"), (b"\\xfe\\xff", "utf-16be")):
        body = mark + ("".join(tags) + "<p>Words <a href=/b>b</a>").encode(encoding)
        for charset in (None, "utf-8"):
            page = parse_page(body, "https://a.example/", Wanted(), charset=charset)
            assert [link.url for link in page.links] == ["https://a.example/b"]
            assert page.charset == encoding
""",
    "fields that nobody knows": """
from silkline.errors import SpecError
from silkline.model.spec import PageSpec, validate
try:
    validate(PageSpec, {f"field{number}": number for number in range(290_000)})
except SpecError as error:
    assert len(str(error)) < 1000
else:
    raise AssertionError
""",
    "lines that are almost the fence of code": """
from silkline.export.markdown_chunks import chunks_of
for line in ("~" * 400_000 + "`", " >" * 200_000 + "~~~`", "`" * 400_000 + "x`", "1. " + " " * 400_000 + "~~~`"):
    (chunk,) = chunks_of(line, 1_000_000)
    assert line[chunk.start : chunk.end].strip() == line.strip()
""",
    "many chunks below the same long headings": """
from datetime import datetime
from silkline.export.chunks import chunks_of_result
from silkline.store.results import Result
text = "".join("#" * level + " " + "[" * 300 + "\\n" for level in range(1, 7)) + "words " * 330_000
result = Result(1, "job", 1, "", "https://a.example/", {"markdown": text}, True, {}, datetime.min)
assert sum(1 for _ in chunks_of_result(result, 100)) > 15_000
""",
    "a URL of colons": """
from silkline.errors import SpecError
from silkline.model.spec import PageSpec, validate
try:
    validate(PageSpec, {"url": ":" * 400_000})
except SpecError as error:
    assert len(str(error)) < 1000
else:
    raise AssertionError
""",
    "a typed host of dots": """
from silkline.api.web.forms import posted_job
from silkline.cli.typed_url import with_scheme
from silkline.errors import UsageError
for end in ("@", " x", ":", "/", ""):
    for text in ("a." * 200_000 + end, "." * 400_000 + end, "a" * 400_000 + end, "[" + ":" * 400_000 + end):
        posted_job({"kind": "page", "url": text, "urls": text})
        try:
            with_scheme(text)
        except UsageError as error:
            assert len(str(error)) < 1000
""",
    "URLs that are all wrong": """
from silkline.errors import SpecError
from silkline.model.spec import PageSpec, validate
for payload in ({"urls": list(range(100_000))}, {"y" * 10_000_000: 1, "url": "https://example.com/"}):
    try:
        validate(PageSpec, payload)
    except SpecError as error:
        assert len(str(error)) < 1000
    else:
        raise AssertionError
""",
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_done_with_in_linear_time(name: str) -> None:
    limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))  # noqa: E731
    done = subprocess.run([sys.executable, "-c", CASES[name]], preexec_fn=limit, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
