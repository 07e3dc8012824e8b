"""The pieces of a download: however large the file is, little of it is in memory at once."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from silkline.export.download import PIECE, download
from silkline.export.open import to_path
from silkline.export.rows import Filter, stream
from silkline.model.ledger import Checkpoint
from silkline.store import urls
from silkline.store.opening import open_database
from tests.store.given import finished, result, running, settled, url

PAGES = 100
TEXT = "words " * 2_000


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_large_file_is_given_away_in_small_pieces(tmp_path: Path, form: str) -> None:
    with closing(open_database(f"sqlite:///{tmp_path / 'silkline.db'}")) as database:
        job, ids = running(database, kind="extension"), range(1, PAGES + 1)
        stored = [result(id, data=json.dumps({"markdown": TEXT, f"of {id}": id})) for id in ids]
        urls.record(database, job, Checkpoint([url(id) for id in ids], [settled(id) for id in ids], stored))
        finished(database, job)
        pieces = list(download(database, tmp_path, job.id, form, "folder"))
        assert max(map(len, pieces)) < PIECE + 2 * len(TEXT)
        with to_path(form, tmp_path / f"file.{form}") as writer:
            for each in stream(database, job.id, Filter()):
                writer.write(each)
        assert b"".join(pieces) == (tmp_path / f"file.{form}").read_bytes()
        assert sum(map(len, pieces)) > 10 * PIECE
