"""Real servers for the tests of the API: one for each database, shared by all tests that do not break it."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from silkline.model.database import Database
from silkline.sample.server import SampleServer
from silkline.store.opening import open_database
from tests.support.served import Client, Served


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def shared_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path_factory.mktemp('shared') / 'silkline.db'}"
        return
    postgres = request.getfixturevalue("postgres")
    url: str = postgres.create_database()
    yield url


@pytest.fixture(scope="session")
def served(shared_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with closing(Served(shared_url, tmp_path_factory.mktemp("served"), max_retries=0)) as server:
        server.ready()
        yield server


@pytest.fixture
def client(served: Served) -> Client:
    return served.ready()


@pytest.fixture
def database(shared_url: str, served: Served) -> Iterator[Database]:
    """The database behind `client`, to prepare what the API will find."""
    with closing(open_database(shared_url)) as database:
        yield database


@pytest.fixture(scope="module")
def site() -> Iterator[SampleServer]:
    with SampleServer() as server:
        yield server


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def trusting(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A server whose operator lets jobs of the API name private addresses."""
    folder = tmp_path_factory.mktemp("trusting")
    url = f"sqlite:///{folder / 'silkline.db'}"
    if request.param == "postgres":
        url = request.getfixturevalue("postgres").create_database()
    with closing(Served(url, folder, api_allow_private=True, max_retries=0)) as server:
        yield server.ready()
