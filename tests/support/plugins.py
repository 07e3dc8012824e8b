"""Plugins as they look when installed: a folder for `PYTHONPATH` with modules and a `dist-info`."""

from collections.abc import Mapping
from pathlib import Path


def install(
    folder: Path,
    modules: Mapping[str, str],
    kinds: Mapping[str, str],
    hooks: Mapping[str, str] | None = None,
    **specs: str,
) -> Path:
    """Put modules (name to source) and entry points (kind or hook to target) into a folder; the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(source)
    about = folder / "a_plugin-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: a-plugin\nVersion: 1.0\n")
    lines = ["[silkline.kinds]", *(f"{kind} = {target}" for kind, target in kinds.items())]
    lines += ["[silkline.specs]", *(f"{kind} = {target}" for kind, target in specs.items())]
    if hooks:
        lines += ["[silkline.page]", *(f"{name} = {target}" for name, target in hooks.items())]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder
