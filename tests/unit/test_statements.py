"""The named statements: both dialects offer the same ones, with the same parameters, and every one is used."""

import re
from pathlib import Path

import pytest

from silkline.store.statements import SQL, _translate, load, parameters_of, statement

NOUNS = sorted(file.stem for file in SQL.glob("*.sql"))
SHARDS = ("shards", "shard_links")  # a crawl over many machines needs PostgreSQL
ONLY_POSTGRES = {"jobs.wake_supervisors"} | {f"{noun}.{verb}" for noun in SHARDS for verb in load(noun, "postgres")}
ONLY_SQLITE: set[str] = set()
STORE = Path(SQL).parent


def names(dialect: str) -> set[str]:
    return {f"{noun}.{verb}" for noun in NOUNS for verb in load(noun, dialect)}


def test_both_dialects_have_the_same_statements() -> None:
    assert names("postgres") - names("sqlite") == ONLY_POSTGRES
    assert names("sqlite") - names("postgres") == ONLY_SQLITE


@pytest.mark.parametrize("name", sorted(names("sqlite") & names("postgres")))
def test_a_statement_takes_the_same_parameters_in_both(name: str) -> None:
    in_postgres = set(re.findall(r"%\(([a-z_]+)\)s", statement(name, "postgres")))
    if name == "urls.append":  # COPY has no parameters: its columns are given in the same order
        columns = re.findall(r"\(([^)]+)\)", statement(name, "postgres"))[0].split(", ")
        assert (columns[0], parameters_of(name)[0]) == ("job_id", "ledger")
        assert columns[1:] == list(parameters_of(name))[1:]
        return
    if name == "jobs.with_prefix":  # PostgreSQL looks for a range of ids, SQLite for text; both are given all of it
        assert in_postgres | set(parameters_of(name)) == {"prefix", "low", "high"}
    else:
        assert in_postgres == set(parameters_of(name))


def test_every_statement_is_used_and_every_name_used_exists() -> None:
    code = "\n".join(file.read_text() for file in STORE.glob("*.py"))
    used = set(re.findall(rf'"((?:{"|".join(NOUNS)})\.[a-z_]+)"', code))
    assert used <= names("postgres") | ONLY_SQLITE
    assert names("postgres") - used <= {"jobs.pending_total"}  # for the page that shows all crawls at once


@pytest.mark.parametrize("noun", NOUNS)
def test_nothing_is_left_of_comments_and_semicolons(noun: str) -> None:
    for dialect in ("sqlite", "postgres"):
        for sql in load(noun, dialect).values():
            assert sql
            assert "--" not in sql
            assert ";" not in sql


def test_a_statement_nobody_wrote_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        statement("jobs.nonsense", "sqlite")


def test_parameters_become_those_of_psycopg_and_casts_stay() -> None:
    sql = "SELECT :id::uuid[], x::text, '12:30' WHERE a LIKE :b || '%' AND c = :b"
    assert _translate(sql, "postgres") == (
        "SELECT %(id)s::uuid[], x::text, '12:30' WHERE a LIKE %(b)s || '%%' AND c = %(b)s"
    )
    assert _translate(sql, "sqlite") == sql


def test_parameters_are_numbered_by_their_first_appearance() -> None:
    assert parameters_of("jobs.finish")[:2] == ("status", "desired")
    assert len(set(parameters_of("jobs.claim"))) == len(parameters_of("jobs.claim"))
