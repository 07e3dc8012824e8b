"""Finding the processes that the diagnostic job `escape` lets loose, by what they run and what they are called."""

from pathlib import Path

from silkline.process_usage import process_ids
from tests.support.supervisors import alive


def find(job_id: str) -> list[int]:
    """Every living process of the job's runner, tagged or not."""
    found = []
    for pid in process_ids():
        try:
            called = Path(f"/proc/{pid}/comm").read_text().strip()
            command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if alive(pid) and (called.startswith(f"silk-{job_id[-6:]}-") or f"escaped from {job_id}" in command):
            found.append(pid)
    return found
