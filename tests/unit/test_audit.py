"""`make audit` with a pip-audit of our own: holes are an error, a missing network is one sentence."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WRITES = """while [ $# -gt 0 ]; do [ "$1" = --output ] && cat > "$2" <<'END'
%s
END
shift; done; exit 1"""
GOOD = {"name": "lens", "version": "2.0", "vulns": []}
HOLE = {"name": "lamp", "version": "1.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"]}]}
UNKNOWN = {"name": "fog", "skip_reason": "not found"}
HAS_NO_NETWORK = "echo 'ConnectionError: Max retries exceeded' >&2; exit 1"
IS_BROKEN = "echo 'no such option' >&2; exit 2"


def report(*packages: dict[str, object]) -> str:
    return WRITES % json.dumps({"dependencies": packages})


@pytest.mark.parametrize(
    ("program", "code", "words"),
    [
        (report(GOOD, UNKNOWN), 0, "0 known holes in 1 packages; 1 packages are not in the database."),
        (report(GOOD, HOLE), 2, "lamp 1.0: PYSEC-1, mended in 1.1"),
        (report(UNKNOWN), 0, "so nothing was checked"),
        (HAS_NO_NETWORK, 0, "no database of known holes can be reached from here, so nothing was checked"),
        (IS_BROKEN, 2, "no such option"),
    ],
)
def test_what_the_audit_says(tmp_path: Path, program: str, code: int, words: str) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "dev.txt").touch()
    (tmp_path / "tests" / "support").mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "support" / "audit.py", tmp_path / "tests" / "support")
    tool = tmp_path / "build" / "audit" / "bin" / "pip-audit"
    tool.parent.mkdir(parents=True)
    tool.write_text(f"#!/bin/bash\n{program}\n")
    tool.chmod(0o755)
    done = subprocess.run(["make", "audit"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == code, done
    assert words in done.stdout + done.stderr
