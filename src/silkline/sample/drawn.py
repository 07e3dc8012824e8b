"""The PDF and the images of the sample site, drawn by code so that the package contains no binary files."""

from __future__ import annotations

import struct
import zlib

_HANDBOOK = (
    (
        "Visitor's handbook",
        "Welcome to Tern Rock. This handbook tells you what to bring, what to leave",
        "alone, and what to do if you miss the last boat.",
        "Bring a warm coat, shoes with a grip, and something to eat. There is no shop.",
        "Leave alone: nests, burrows, the fog horn, and the red lever in the lamp room.",
        "If you miss the last boat, ring the bell. Somebody in Saltby will hear it,",
        "sigh, and fetch you.",
    ),
    (
        "The light, for children",
        "The lamp is no larger than your fist. The lens around it is as tall as a",
        "grown-up. It gathers the light and sends it out to sea in one long beam.",
        "Count to fifteen. You have seen two flashes. That is how sailors know it is us.",
    ),
)


def handbook() -> bytes:
    """A PDF of two pages."""
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    first_page = 5
    kids = " ".join(f"{first_page + 2 * place} 0 R" for place in range(len(_HANDBOOK)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(_HANDBOOK)} >>".encode(),
        font,
        b"<< /Title (Visitor's handbook of Tern Rock) /Author (The friends of the light) >>",
    ]
    for place, lines in enumerate(_HANDBOOK):
        number = first_page + 2 * place
        stream = zlib.compress(_typeset(lines))
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {number + 1} 0 R "
            f"/Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        objects.append(b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(stream), stream))
    return _file(objects)


def _typeset(lines: tuple[str, ...]) -> bytes:
    parts = ["BT 72 760 Td 18 TL /F1 16 Tf"]
    for place, line in enumerate(lines):
        escaped = line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
        parts.append(f"({escaped}) Tj T*" + (" T* /F1 11 Tf" if place == 0 else ""))
    return " ".join([*parts, "ET"]).encode("latin-1")


def _file(objects: list[bytes]) -> bytes:
    body, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    trailer = b"<< /Size %d /Root 1 0 R /Info 4 0 R >>" % (len(objects) + 1)
    start = len(body)
    return body + b"xref\n0 %d\n0000000000 65535 f \n%strailer\n%s\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1,
        table,
        trailer,
        start,
    )


def picture(red: int, green: int, blue: int) -> bytes:
    """A PNG: a beam of light on a dark sea."""
    width, height = 96, 54
    rows = []
    for y in range(height):
        row = bytearray([0])
        for x in range(width):
            glow = max(0.0, 1 - abs(y - height / 3) / (2 + x / 5))
            row += bytes(int(20 + (colour - 20) * glow) for colour in (red, green, blue))
        rows.append(bytes(row))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(b"".join(rows), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )
