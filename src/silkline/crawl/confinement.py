"""Preparation of the processes of a crawl before they are confined: modules for a reader, folders for a fetcher."""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from silkline import page_files
from silkline.confine.roles import confine_fetcher, confine_runner
from silkline.crawl.extraction import SUGGESTIONS
from silkline.crawl.page_hooks import load_hooks
from silkline.crawl.plan import Plan
from silkline.private_files import make_private_folder
from silkline.warc_files import folder_of

# The encodings of the web platform. Python loads each from a file at first use, and a confined reader cannot open
# files.
_ENCODINGS: Final = (
    *(
        "ascii",
        "latin_1",
        "utf_8",
        "utf_8_sig",
        "utf_16",
        "utf_16_be",
        "utf_16_le",
        "utf_32",
        "idna",
        "raw_unicode_escape",
    ),
    *("cp866", "cp874", *(f"cp125{number}" for number in range(9)), "koi8_r", "koi8_u", "mac_roman", "mac_cyrillic"),
    *(f"iso8859_{number}" for number in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16)),
    *("gb2312", "gbk", "gb18030", "big5", "big5hkscs", "cp950", "euc_jp", "iso2022_jp", "shift_jis", "cp932"),
    *("euc_kr", "cp949", "tis_620"),
)
_IMAGES: Final = "pypdf.generic._image_xobject"  # loads a whole imaging library, and extracting text needs no image
_ALWAYS: Final = ("traceback", "linecache", "unicodedata", "stringprep")


_USUAL: Final = ("ascii", "latin_1", "cp1252", "utf_8_sig", "utf_16", "utf_16_be", "utf_16_le", "idna")


def load_usual(plan: Plan) -> None:
    """Import what a page in a usual charset needs that is not a PDF: a few milliseconds."""
    _load_extraction(plan)
    for name in (*(f"encodings.{name}" for name in _USUAL), "unicodedata", "stringprep"):
        importlib.import_module(name)


def load_everything(plan: Plan) -> None:
    """Import all modules that reading may need: nothing can be imported later. About 0.1 s, most of it for PDF."""
    _load_extraction(plan)
    pdf = _of_pdf() if plan.content != "none" else ()
    for name in (*(f"encodings.{name}" for name in _ENCODINGS), *_ALWAYS, *pdf):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def _load_extraction(plan: Plan) -> None:
    """Import what fields and page hooks need."""
    if any(field.regex or field.when for field in plan.fields):
        importlib.import_module("re2")
    if SUGGESTIONS in plan.facts:
        importlib.import_module("silkline.parse.field_suggestions")
    load_hooks(plan.hooks)


def _of_pdf() -> Iterator[str]:
    """All modules of pypdf. It loads some of them only when a file needs them."""
    import pypdf

    for module in pkgutil.walk_packages(pypdf.__path__, "pypdf.", onerror=lambda name: None):
        if module.name != _IMAGES:
            yield module.name


def confine_fetcher_of(plan: Plan) -> None:
    """Confine a fetcher: it can write only to the archive and the files of its job. A fetcher that starts browsers is
    confined like a runner."""
    if plan.rendering is not None and not plan.rendering.url:
        confine_runner()
        return
    writable = []
    if plan.archive is not None:
        folder = folder_of(Path(plan.archive[0]), plan.archive[1])
        folder.mkdir(parents=True, exist_ok=True)
        writable.append(folder)
    if plan.rendering is not None:
        places = Path(plan.rendering.places)
        places.mkdir(parents=True, exist_ok=True)
        writable.append(places)
        if (place := plan.rendering.files) is not None:
            folder = page_files.folder_of(Path(place.data), place.job_id)
            make_private_folder(folder)
            writable.append(folder)
    confine_fetcher(writable)
