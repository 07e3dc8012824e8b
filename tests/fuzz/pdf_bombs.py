"""PDF files that are small and ask for much: each is made of a handful of objects."""

import zlib
from collections.abc import Callable, Iterable

Bomb = Callable[[int], bytes]


def pdf_of(objects: Iterable[bytes], trailer: bytes = b"") -> bytes:
    """A file with these objects, numbered from 1; the first is the catalog."""
    body, places = b"%PDF-1.7\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    start = len(body)
    body += b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1)
    body += b"".join(b"%010d 00000 n \n" % place for place in places)
    return body + b"trailer\n<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF\n" % (len(places) + 1, trailer, start)


def stream(content: bytes, extra: bytes = b"") -> bytes:
    return b"<</Length %d%s>>\nstream\n%s\nendstream" % (len(content), extra, content)


def packed(content: bytes, layers: int = 1) -> bytes:
    for _ in range(layers):
        content = zlib.compress(content, 9)
    filters = b"/FlateDecode" * layers
    return stream(content, b"/Filter[" + filters + b"]")


def one_page(contents: bytes, *more: bytes, resources: bytes = b"/Font<</F1 5 0 R>>") -> bytes:
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Resources<<%s>>/Contents 4 0 R>>" % resources
    return pdf_of(
        [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>", page, contents, font, *more]
    )


def _text(operators: bytes, times: int) -> bytes:
    return b"BT /F1 12 Tf " + operators * times + b" ET"


def _many_pages(size: int) -> bytes:
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R>>"
    kids = b"3 0 R " * (size // 6)
    return pdf_of(
        [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, size), page, packed(b"BT ET")]
    )


def _pages_in_a_circle(_size: int) -> bytes:
    return pdf_of([b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2>>"])


def _deep_pages(size: int) -> bytes:
    count = min(size // 50, 5_000)
    nodes = [b"<</Type/Pages/Kids[%d 0 R]/Count 1>>" % (n + 3) for n in range(count)]
    return pdf_of([b"<</Type/Catalog/Pages 2 0 R>>", *nodes, b"<</Type/Page/MediaBox[0 0 9 9]>>"])


def _doubling_pages(_size: int) -> bytes:
    """Each node has the next one twice: 2^30 pages."""
    nodes = [b"<</Type/Pages/Kids[%d 0 R %d 0 R]/Count 2>>" % (n + 3, n + 3) for n in range(30)]
    return pdf_of([b"<</Type/Catalog/Pages 2 0 R>>", *nodes, b"<</Type/Page/MediaBox[0 0 9 9]>>"])


def _doubling_forms(_size: int) -> bytes:
    """Each form draws the next one twice: 2^24 texts."""
    forms = []
    for n in range(24):
        draw = b"/X Do /X Do" if n < 23 else _text(b"(x) Tj ", 10)
        forms.append(
            stream(
                draw,
                b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</Font<</F1 5 0 R>>/XObject<</X %d 0 R>>>>"
                % (n + 7),
            )
        )
    return one_page(stream(b"/X Do"), *forms, resources=b"/Font<</F1 5 0 R>>/XObject<</X 6 0 R>>")


def _form_in_itself(_size: int) -> bytes:
    form = stream(b"/X Do", b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 6 0 R>>>>")
    return one_page(stream(b"/X Do"), form, resources=b"/XObject<</X 6 0 R>>")


def _object_streams(size: int) -> bytes:
    count = size // 4
    index = b" ".join(b"%d 0" % (n + 10) for n in range(count))
    content = zlib.compress(index + b" null")
    return pdf_of(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Kids[]/Count 0>>",
            stream(content, b"/Type/ObjStm/N %d/First %d/Filter/FlateDecode" % (count, len(index))),
        ]
    )


def _cmap(size: int) -> bytes:
    ranges = b"100 beginbfrange\n" + b"<0000> <ffff> <0000>\n" * 100 + b"endbfrange\n"
    font = b"<</Type/Font/Subtype/Type0/BaseFont/A/Encoding/Identity-H/ToUnicode 7 0 R>>"
    return one_page(
        packed(_text(b"<0041> Tj ", 10)),
        font,
        packed(ranges * max(1, size // 2000)),
        resources=b"/Font<</F1 6 0 R>>",
    )


PDF_BOMBS: dict[str, Bomb] = {
    "zeros in a stream": lambda size: one_page(packed(b"\0" * (size * 400))),
    "blanks in a stream": lambda size: one_page(packed(b" " * (size * 400))),
    "zeros in two layers": lambda size: one_page(packed(b"\0" * (size * 4_000), 2)),
    "text in a stream": lambda size: one_page(packed(_text(b"(word) Tj ", size * 4))),
    "moves": lambda size: one_page(packed(_text(b"1 0 0 1 5 5 Tm (w) Tj ", size))),
    "numbers": lambda size: one_page(packed(b"1 " * (size * 50))),
    "open arrays": lambda size: one_page(packed(b"[" * (size * 50))),
    "open dictionaries": lambda size: one_page(packed(b"<<" * (size * 20))),
    "open texts": lambda size: one_page(packed(b"(" * (size * 50))),
    "states": lambda size: one_page(packed(b"q " * (size * 20))),
    "inline images": lambda size: one_page(packed(b"BI ID x EI " * (size * 4))),
    "open inline image": lambda size: one_page(packed(b"BI /W 1 ID " + b"E" * (size * 50))),
    "many pages": _many_pages,
    "pages in a circle": _pages_in_a_circle,
    "deep pages": _deep_pages,
    "doubling pages": _doubling_pages,
    "doubling forms": _doubling_forms,
    "form in itself": _form_in_itself,
    "object streams": _object_streams,
    "character map": _cmap,
    "many filters": lambda _size: one_page(packed(b"x", 200)),
    "run length": lambda size: one_page(stream(b"\x81x" * size + b"\x80", b"/Filter/RunLengthDecode")),
    "lzw": lambda size: one_page(stream(b"\x80\x0b\x60\x50\x22\x0c\x0c\x85\x01" * (size // 9), b"/Filter/LZWDecode")),
    "ascii": lambda size: one_page(stream(b"z" * size + b"~>", b"/Filter/ASCII85Decode")),
    "hex": lambda size: one_page(stream(b"4" * size + b">", b"/Filter/ASCIIHexDecode")),
    "predictor": lambda size: one_page(
        stream(
            zlib.compress(b"\x02" * (size * 20)),
            b"/Filter/FlateDecode/DecodeParms<</Predictor 15/Columns 1>>",
        )
    ),
    "no table": lambda size: b"%PDF-1.4\n" + b"1 0 obj\n<<>>\nendobj\n" * (size // 20),
    "no table, open objects": lambda size: b"%PDF-1.4\n" + b"1 0 obj\n" * (size // 8),
    "tables in a circle": lambda _size: b"%PDF-1.4\nxref\n0 0\ntrailer\n<</Prev 9/Root 1 0 R>>\nstartxref\n9\n%%EOF",
    "large table": lambda size: b"%PDF-1.4\nxref\n0 999999999\n" + b"0000000000 00000 n \n" * (size // 20),
    "nested arrays": lambda size: pdf_of([b"<</Type/Catalog/Pages " + b"[" * size + b">>"]),
    "nested dictionaries": lambda size: pdf_of([b"<</A" * (size // 4)]),
    "long name": lambda size: pdf_of([b"<</Type/" + b"#41" * (size // 3) + b">>"]),
    "long text": lambda size: pdf_of([b"<</Type/Catalog/A (" + b"\\(" * (size // 2) + b")>>"]),
    "ends": lambda size: b"%PDF-1.4\n" + b"%%EOF\n" * (size // 6),
    "only blanks": lambda size: b"%PDF-1.4\n" + b" " * size,
    "only line ends": lambda size: b"%PDF-1.4\n" + b"\r" * size + b"startxref",
    "title": lambda size: pdf_of(
        [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[]/Count 0>>", b"<</Title(" + b"x" * size + b")>>"],
        b"/Info 3 0 R",
    ),
}
