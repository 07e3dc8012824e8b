"""Prints the SBOM of the system that it runs in, as CycloneDX JSON: the Debian packages and the Python packages.

    docker run --rm --entrypoint python3 silkline /opt/silkline/sbom.py > sbom.json

It needs only the standard library, so it works in the image itself.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import Any
from urllib.parse import quote

DPKG = ("dpkg-query", "--show", "--showformat", "${db:Status-Status}\t${Package}\t${Version}\t${Architecture}\n")


def main() -> None:
    packages = Path(__file__).resolve().parent.glob("lib/python3*/site-packages")
    components = sorted(
        [*debian(), *python([str(path) for path in packages] or sys.path)], key=lambda each: each["purl"]
    )
    document = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": components}
    json.dump(document, sys.stdout, indent=1)
    print()


def debian() -> Iterator[dict[str, Any]]:
    """The packages that dpkg has installed; none on another system."""
    if shutil.which(DPKG[0]) is None:
        return
    listed = subprocess.run(DPKG, capture_output=True, text=True, check=True).stdout
    for status, name, version, architecture in (line.split("\t") for line in listed.splitlines()):
        if status == "installed":
            yield component(name, version, f"pkg:deb/debian/{name}@{quote(version)}?arch={architecture}")


def python(folders: list[str]) -> Iterator[dict[str, Any]]:
    """The Python packages in these folders, with their licences."""
    for found in distributions(path=folders):
        name, version = found.metadata["Name"], found.version
        licence = found.metadata["License-Expression"]
        yield component(name, version, f"pkg:pypi/{name.lower().replace('_', '-')}@{quote(version)}", licence)


def component(name: str, version: str, purl: str, licence: str | None = None) -> dict[str, Any]:
    licences = {"licenses": [{"expression": licence}]} if licence else {}
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl, **licences}


if __name__ == "__main__":
    main()
