"""Finds the language of code blocks, and writes it in the form that turbohtml reads."""

import re
from typing import Final

from turbohtml import Document, Element

from silkline.parse.new_elements import NewElements

_LONGEST_CLASS: Final = 1_000  # each code block reads the classes of its parents, which can be very long
_PREFIXED: Final = re.compile(
    r"(?:^|\s)(?:mw-highlight-lang|language|lang|highlight-source|highlight|brush|code|syntax|sourcecode|src)"
    r"[-:]\s*([a-z][\w+#.-]{0,20})",
    re.IGNORECASE,
)
_NAME: Final = re.compile(r"[a-z][\w+#.-]{0,19}", re.IGNORECASE)
_ATTRIBUTES: Final = ("data-lang", "data-language", "data-code-language", "data-enlighter-language")
_NO_LANGUAGE: Final = frozenset(
    {"block", "default", "none", "plain", "plaintext", "text", "toolbar", "wrapper", "box", "container"}
)
# Highlighters and Pandoc name the language as a class without any prefix.
# fmt: off
_LANGUAGES: Final = frozenset({
    "ada", "apache", "applescript", "asm", "awk", "bash", "basic", "c", "clojure", "cmake", "cobol", "cpp",
    "crystal", "cs", "csharp", "css", "cuda", "d", "dart", "diff", "docker", "dockerfile", "elixir", "elm",
    "erlang", "fish", "fortran", "fsharp", "go", "gradle", "graphql", "groovy", "haskell", "hcl", "html", "http",
    "ini", "java", "javascript", "jinja", "js", "json", "jsx", "julia", "kotlin", "latex", "less", "lisp", "lua",
    "makefile", "markdown", "matlab", "nginx", "nim", "nix", "objectivec", "ocaml", "pascal", "perl", "php",
    "powershell", "prolog", "protobuf", "puppet", "python", "python3", "py", "r", "ruby", "rb", "rust", "rs",
    "sass", "scala", "scheme", "scss", "sh", "shell", "solidity", "sql", "swift", "tcl", "tex", "toml", "ts", "tsx",
    "typescript", "vb", "verilog", "vhdl", "vim", "vue", "wasm", "xml", "yaml", "yml", "zig", "zsh",
})
# fmt: on
_LINE_NUMBERS: Final = (
    "td.linenos, td.gutter, td.rouge-gutter, td.lineno, span.lineno, span.linenos, .line-numbers-rows"
)


def tidy_code(root: Element | Document) -> None:
    """Sets the language of each code block, and removes line numbers."""
    blocks = root.find_all("pre")
    if not blocks:
        return
    root.remove(_LINE_NUMBERS)
    wrappers = NewElements("<code></code>")
    for block in blocks:
        code = block.find("code")
        language = _language(block, code)
        if not language:
            continue
        if code is None:
            code = block.wrap_children(wrappers.next())
        code.attrs["class"] = f"language-{language}"


def _language(block: Element, code: Element | None) -> str:
    above = block.parent
    for element in (code, block, above, above.parent if above is not None else None):
        if not isinstance(element, Element):
            continue
        own = element is block or element is code
        given = next((value for name in _ATTRIBUTES if (value := element.attr(name))), None)
        if own:
            given = given or element.attr("lang")
        if given and _NAME.fullmatch(given.strip()) and given.strip().lower() not in _NO_LANGUAGE:
            return given.strip().lower()
        names = (element.attr("class") or "")[:_LONGEST_CLASS]
        for found in _PREFIXED.finditer(names):
            if found[1].lower() not in _NO_LANGUAGE:
                return found[1].lower()
        if own:
            for name in names.lower().split():
                if name in _LANGUAGES:
                    return name
    return ""
