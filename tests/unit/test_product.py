"""The product of a page: its description is HTML of the page, and as hostile as the rest."""

from silkline.parse import product


def test_a_description_cannot_open_formatting_again_without_end(monkeypatch):
    documents, parse = [], product.parse

    def remembered(*given, **more):
        documents.append(parse(*given, **more))
        return documents[-1]

    monkeypatch.setattr(product, "parse", remembered)
    bomb = "<p>" + "".join(f"<b a{number}>" for number in range(1_200)) + "</p>" + "<p>x" * 2_000
    found = product.product_of([{"@type": "Product", "name": "n", "description": bomb}])
    assert found is not None
    assert found.description.count("x") > 1_000
    (document,) = documents
    assert sum(1 for _ in document.root.iter_elements()) < 10_000


def test_a_description_keeps_its_words():
    html = "Größe &amp; Farbe<script>no</script><p><b>Fett</b> und <i>schräg</i>"
    found = product.product_of([{"@type": "Product", "name": "n", "description": html}])
    assert found is not None
    assert found.description == "Größe & Farbe\nFett und schräg"
