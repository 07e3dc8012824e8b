r"""Writes MathML as TeX: the TeX that the page has beside it, else the common elements of presentation MathML.

Unknown elements, and those that are nested too deeply, give the text in them, so nothing is lost.
"""

from typing import Final

from turbohtml import Element, Text

_DEEPEST: Final = 40
_LONGEST: Final = 10_000
_TEX: Final = ("application/x-tex", "tex", "latex")
_SCRIPTS: Final = {"msup": ("^",), "msub": ("_",), "msubsup": ("_", "^"), "mover": ("^",), "munder": ("_",)}
_SCRIPTS_BOTH: Final = {**_SCRIPTS, "munderover": ("_", "^")}
_ACCENTS: Final = {"\u00af": r"\bar", "\u203e": r"\bar", "^": r"\hat", "\u02c6": r"\hat", "~": r"\tilde",
                   "\u02dc": r"\tilde", "\u2192": r"\vec", "\u20d7": r"\vec", "\u02d9": r"\dot"}  # fmt: skip
_SIGNS: Final = {
    "\u2211": r"\sum", "\u220f": r"\prod", "\u222b": r"\int", "\u221e": r"\infty", "\u2264": r"\le", "\u2265": r"\ge",
    "\u2260": r"\ne", "\u00d7": r"\times", "\u22c5": r"\cdot", "\u00b1": r"\pm", "\u2192": r"\to", "\u2208": r"\in",
    "\u2202": r"\partial", "\u2207": r"\nabla", "\u2248": r"\approx", "\u2212": "-", "\u2061": "", "\u2062": "",
    "\u2063": "", "\u03b1": r"\alpha", "\u03b2": r"\beta", "\u03b3": r"\gamma", "\u03b4": r"\delta",
    "\u03b5": r"\varepsilon", "\u03b8": r"\theta", "\u03bb": r"\lambda", "\u03bc": r"\mu", "\u03c0": r"\pi",
    "\u03c1": r"\rho", "\u03c3": r"\sigma", "\u03c4": r"\tau", "\u03c6": r"\varphi", "\u03c9": r"\omega",
    "\u0394": r"\Delta", "\u03a3": r"\Sigma", "\u03a9": r"\Omega", "{": r"\{", "}": r"\}", "%": r"\%", "#": r"\#",
}  # fmt: skip


def tex_of(math: Element) -> str:
    """The TeX of a formula; empty if it has none or is too long."""
    # `find_all` with a limit stops early; the annotation is at the end of the formula.
    for annotation in math.find_all("annotation", limit=4):
        if (annotation.attr("encoding") or "").lower() in _TEX:
            return annotation.text
    stated = math.attr("alttext")
    if stated:
        return stated
    written = _written(math, _DEEPEST)
    return "" if len(written) > _LONGEST else " ".join(written.split())


def _written(element: Element, deepest: int) -> str:
    if deepest == 0:
        return element.text.strip()
    tag = element.tag
    if tag in ("mi", "mn", "mo", "ms"):
        return _token(element)
    if tag in ("mtext", "annotation", "annotation-xml"):
        text = element.text.strip()
        return rf"\text{{{text}}}" if text and tag == "mtext" else ""
    if tag == "mspace":
        return " "
    parts = [_written(child, deepest - 1) for child in element.children if isinstance(child, Element)]
    if tag == "mfrac" and len(parts) == 2:
        return rf"\frac{{{parts[0]}}}{{{parts[1]}}}"
    if tag == "msqrt":
        return rf"\sqrt{{{''.join(parts)}}}"
    if tag == "mroot" and len(parts) == 2:
        return rf"\sqrt[{parts[1]}]{{{parts[0]}}}"
    if tag == "mover" and len(parts) == 2 and parts[1].strip() in _ACCENTS:
        return f"{_ACCENTS[parts[1].strip()]}{{{parts[0]}}}"
    signs = _SCRIPTS_BOTH.get(tag)
    if signs is not None and len(parts) == len(signs) + 1:
        scripts = "".join(f"{sign}{{{part.strip()}}}" for sign, part in zip(signs, parts[1:], strict=True))
        base = parts[0].rstrip()
        return f"{base if len(base) < 2 or base.startswith(chr(92)) else f'{{{base}}}'}{scripts}"
    if tag == "mtable":
        return rf"\begin{{matrix}} {' '.join(parts).removesuffix(chr(92) * 2)} \end{{matrix}}"
    if tag in ("mtr", "mlabeledtr"):
        return " & ".join(parts) + r" \\"
    if not parts:
        return "".join([child.data for child in element.children if isinstance(child, Text)]).strip()
    return "".join(parts)


def _token(element: Element) -> str:
    text = element.text.strip()
    if text in _SIGNS:
        sign = _SIGNS[text]
        return f"{sign} " if sign.startswith("\\") and sign[1:].isalpha() else sign
    if element.tag == "mi" and len(text) > 1 and text.isascii() and text.isalpha():
        return rf"\mathrm{{{text}}}"
    return text
