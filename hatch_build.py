"""Compiles the modules that look at every element of a page, with Cython: docs/decisions/0026-compiled-modules.md.

The `.py` files are ordinary Python modules. The `.pxd` file beside each of them gives the types of its variables. The
`.pyx` files exist only compiled, and other Python modules do the same. Without a C compiler, or without the header
files of Python, all of it runs as Python: the same results, slower.

`python hatch_build.py` compiles into the source tree, as an editable install does. Wheels get their own copies.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
PACKAGE = Path("silkline", "parse")
MODULES = (
    "block_features.py",
    "decision_trees.py",
    "fast_word_count.pyx",
    "letters.py",
    "main_content.py",
    "neighbours.py",
    "outline.py",
    "page_model.py",
    "plain_links.pyx",
    "tag_counts.pyx",
)
# No debug information and no path of this machine in the result, so that two builds give the same bytes.
FLAGS = ("-O3", "-g0")


class CompileHook(BuildHookInterface):  # type: ignore[type-arg]
    """Called by hatchling for every wheel, and for an editable install."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            compile_in_place(Path(self.root))
            return
        self.folder = tempfile.mkdtemp()
        compiled = compiled_modules(Path(self.root), Path(self.folder))
        if compiled:
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            build_data["force_include"] |= {str(path): str(PACKAGE / path.name) for path in compiled}

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            shutil.rmtree(self.folder, ignore_errors=True)


def compile_in_place(root: Path) -> bool:
    """Whether the modules could be compiled. Each one is replaced at once: a running process keeps the old one."""
    target = root / "src" / PACKAGE
    for old in target.glob("*.so"):  # also those of other versions of Python, which may be older than their source
        old.unlink()
    with tempfile.TemporaryDirectory() as folder:
        compiled = compiled_modules(root, Path(folder))
        for path in compiled:
            shutil.copy2(path, target / f".{path.name}.new")
            (target / f".{path.name}.new").replace(target / path.name)
    return bool(compiled)


def compiled_modules(root: Path, folder: Path) -> list[Path]:
    """The compiled modules, made in the folder; none if this machine cannot compile, and says why."""
    for path in (root / "src" / PACKAGE).iterdir():
        if path.name in MODULES or path.suffix == ".pxd" or path.name == "__init__.py":
            (folder / PACKAGE).mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, folder / PACKAGE)
    (folder / "silkline" / "__init__.py").touch()
    try:
        built = subprocess.run(
            [sys.executable, str(root / "hatch_build.py"), "--in-folder"], cwd=folder, capture_output=True, text=True
        )
    except OSError as error:
        built = subprocess.CompletedProcess([], 1, "", str(error))
    if built.returncode:
        last = (built.stderr.strip() or built.stdout.strip()).rpartition("\n")[2]
        print(f"Silkline: its page reader runs without compiled code, which is slower: {last}", file=sys.stderr)
        return []
    return sorted((folder / PACKAGE).glob("*.so"))


def compile_here() -> None:
    """Compiles the modules in the current folder."""
    from Cython.Build import cythonize
    from setuptools import Extension, setup

    extensions = [
        Extension(".".join([*PACKAGE.parts, Path(name).stem]), [str(PACKAGE / name)], extra_compile_args=list(FLAGS))
        for name in MODULES
    ]
    modules = cythonize(
        extensions,
        quiet=True,
        nthreads=2,
        compiler_directives={"language_level": 3, "annotation_typing": False},
    )
    setup(name="silkline", ext_modules=modules, script_args=["--quiet", "build_ext", "--inplace", "--parallel", "2"])


if __name__ == "__main__":
    if sys.argv[1:] == ["--in-folder"]:
        compile_here()
    else:
        sys.exit(0 if compile_in_place(ROOT) else 1)
