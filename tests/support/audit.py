"""Says what pip-audit found: `python tests/support/audit.py REPORT LOG`. Ends with 1 if a package has a known hole.

A package that the database does not know counts as not checked. Where none could be checked, one sentence says so.
"""

import json
import re
import sys
from pathlib import Path

UNREACHABLE = re.compile(r"connect|timed? ?out|resolve|unreachable|max retries|proxy", re.IGNORECASE)
NOTHING = "make audit: no database of known holes can be reached from here, so nothing was checked."


def main(report: Path, log: Path) -> int:
    try:
        packages = json.loads(report.read_text())["dependencies"]
    except (OSError, ValueError, KeyError):
        said = log.read_text(errors="replace")
        print(NOTHING if UNREACHABLE.search(said) else said)
        return 0 if UNREACHABLE.search(said) else 1
    checked = [package for package in packages if "skip_reason" not in package]
    if not checked:
        print(NOTHING)
        return 0
    holes = [(package, hole) for package in checked for hole in package.get("vulns", ())]
    for package, hole in holes:
        mended = ", ".join(hole.get("fix_versions", ())) or "no version yet"
        print(f"{package['name']} {package['version']}: {hole['id']}, mended in {mended}")
    unknown = len(packages) - len(checked)
    rest = f"; {unknown} packages are not in the database" if unknown else ""
    print(f"make audit: {len(holes)} known holes in {len(checked)} packages{rest}.")
    return 1 if holes else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
