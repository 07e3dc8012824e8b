r"""Prepares formulas for Markdown: `$x$` in a line, `$$x$$` as a block, each formula once.

Pages have a formula as MathML, often beside the same formula as TeX, as an image or as rendered text for the eye. The
TeX of the author is used where the page has it; other MathML is written as TeX.
"""

import re
from collections.abc import Iterable
from typing import Final

from turbohtml import Document, Element, Text

from silkline.parse.first_children import first_children, has_more_children
from silkline.parse.markdown_marks import formula
from silkline.parse.mathml import tex_of
from silkline.parse.new_elements import NewElements

_KEPT: Final = "data-silkline-tex"
_FOUND: Final = f"math, span[{_KEPT}], span.math, div.math, .arithmatex"
_IMAGES: Final = frozenset({"latex", "tex"})
_AROUND: Final = frozenset(
    {"katex", "katex-display", "katex-mathml", "mwe-math-element", "MathJax", "MathJax_Display", "MJX_Assistive_MathML"}
)
_AROUND_TAGS: Final = frozenset({"mjx-container", "mjx-assistive-mml"})
_RENDERED: Final = (
    "span.MathJax_Preview, span.MathJax, span.MathJax_SVG, span.MathJax_CHTML, "
    "div.MathJax_Display, div.MathJax_SVG_Display, .MJXc-display"
)
_PLACE: Final = "<span></span>"
_FEW: Final = 4
_LONGEST: Final = 10_000
_LEVELS: Final = 5
_MAX_CLASS: Final = 300
_DELIMITED: Final = re.compile(r"\s*(\\\(|\\\[|\$\$|\$)(.*?)(?:\\\)|\\\]|\$\$|\$)\s*", re.DOTALL)
_STYLE: Final = re.compile(r"\{\\(display|text)style\s+(.*)\}", re.DOTALL)


def keep_tex_scripts(scripts: Iterable[Element]) -> list[Element]:
    """Puts an empty element in the place of each formula of MathJax that is in a script: it is no visible text."""
    kept, places = [], NewElements(_PLACE)
    for script in scripts:
        kind = script.attr("type")
        if kind is None or not kind.lower().startswith("math/tex") or script.tag != "script":
            continue
        display = "$$" if "display" in kind else "$"
        element = places.next()
        element.attrs[_KEPT] = display + script.text[:_LONGEST]
        script.replace_with(element)
        kept.append(element)
    return kept


def fill_tex(kept: list[Element]) -> None:
    """Makes the kept formulas text, so that they count as content."""
    for element in kept:
        element.set_text(_kept_tex(element)[0])


def take_out(root: Element | Document) -> list[tuple[Element, Element]]:
    """Puts an inline element with its text in the place of each MathML formula. Returns both, for `put_back`."""
    taken, places = [], NewElements(_PLACE)
    done: set[Element] = set()
    for math in root.find_all("math"):
        if math not in done:
            done.update(math.find_all("math"))
            place = places.next()
            place.append(Text(math.text))
            math.replace_with(place)
            taken.append((place, math))
    return taken


def put_back(taken: list[tuple[Element, Element]]) -> None:
    """Puts the formulas back."""
    for place, math in taken:
        if place.parent is not None:
            place.replace_with(math)


def show_tex_scripts(root: Element | Document) -> None:
    """Puts the kept formulas into the text, for HTML."""
    kept = root.select(f"span[{_KEPT}]")
    if kept:
        root.remove(_RENDERED)
    for element in kept:
        tex, display = _kept_tex(element)
        del element.attrs[_KEPT]
        element.set_text(rf"\[{tex}\]" if display else rf"\({tex}\)")


def tidy_formulas(root: Element | Document, formulas: list[str], *, marked: bool = True) -> None:
    """Replaces each formula by a mark and adds it to the formulas; or, if not `marked`, replaces it by its TeX."""
    done: set[Element] = set()
    found = root.select(_FOUND)
    if any(element.tag == "span" and element.attr(_KEPT) is not None for element in found):
        root.remove(_RENDERED)
    for element in found:
        if element in done or element.parent is None:
            continue
        place = element
        if element.tag == "math":
            place, display = _place(element)
            done.update(place.find_all("math"))
            tex = tex_of(element)
        elif element.attr(_KEPT) is not None:
            tex, display = _kept_tex(element)
        else:
            tex, display = _delimited(element)
        tex = _plain(tex)
        if not tex:
            continue
        written = f"$${tex}$$" if display else f"${tex}$"
        text = formula(len(formulas)) if marked else written
        if place.tag == "div":
            place.set_text(text)
        else:
            place.replace_with(Text(text))
        formulas.append(written)


def tidy_formula_images(root: Element | Document, formulas: list[str]) -> None:
    """Replaces images of formulas that have their TeX by marks, and adds the TeX to the formulas."""
    for image in root.find_all("img"):
        names = image.attr("class")
        if names and not _IMAGES.isdisjoint(names[:_MAX_CLASS].split()) and (tex := _plain(image.attr("alt") or "")):
            image.replace_with(Text(formula(len(formulas))))
            formulas.append(f"${tex}$")


def _place(math: Element) -> tuple[Element, bool]:
    """The element that shows the formula in all its forms, and whether it is a block."""
    place, display = math, math.attr("display") == "block"
    for _ in range(_LEVELS):
        above = place.parent
        if not isinstance(above, Element) or (above.tag == "div" and has_more_children(above, _FEW)):
            break
        names = (above.attr("class") or "")[:_MAX_CLASS].split()
        if above.tag in _AROUND_TAGS:
            display = display or above.attr("display") == "true"
        elif above.tag in ("div", "span") and not _AROUND.isdisjoint(names):
            display = display or "katex-display" in names or "MathJax_Display" in names
        elif above.tag == "span" and any(name.startswith(("mwe-math", "math")) for name in names):
            display = display or "display" in names or "mwe-math-mathml-display" in names
        else:
            break
        place = above
    return place, display


def _kept_tex(element: Element) -> tuple[str, bool]:
    kept = element.attr(_KEPT) or ""
    return kept.lstrip("$"), kept.startswith("$$")


def _delimited(element: Element) -> tuple[str, bool]:
    """The TeX of an element that has nothing but a formula between its delimiters."""
    only = next(first_children(element, 1), None)
    if not isinstance(only, Text) or only.next_sibling is not None or len(only.data) > _LONGEST:
        return "", False
    found = _DELIMITED.fullmatch(only.data)
    return (found[2], found[1] in (r"\[", "$$")) if found else ("", False)


def _plain(tex: str) -> str:
    if len(tex) > _LONGEST:
        return ""
    tex = " ".join(tex.split())
    style = _STYLE.fullmatch(tex)
    return (style[2] if style else tex).strip().strip("$")
