"""`silkline mcp` as an assistant starts it, spoken to by the protocol's own client."""

import json
import re
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from silkline.sample.server import SampleServer
from tests.acceptance.conftest import PATIENCE, Silkline
from tests.support.served import Client as HttpClient


@pytest.fixture
def site() -> Iterator[SampleServer]:
    with SampleServer() as server:
        yield server


@asynccontextmanager
async def assistant(silkline: Silkline, *arguments: str) -> AsyncIterator[Client]:
    command, *rest = silkline.command("mcp", "--allow-private", "127.0.0.0/8", *arguments)
    started = StdioServerParameters(command=command, args=rest, env=silkline.environment(), cwd=str(silkline.folder))
    with (silkline.folder / "mcp.log").open("a") as log:
        async with Client(stdio_client(started, errlog=log)) as client:
            yield client


async def use(client: Client, tool: str, **arguments: Any) -> str:
    answer = await client.call_tool(tool, arguments)
    (content,) = answer.content
    assert not answer.is_error, content
    return str(content.text)  # type: ignore[union-attr]


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error, answer
    return str(answer.content[0].text)  # type: ignore[union-attr]


def test_a_model_reads_a_page_and_crawls_a_site(on_both: Silkline, site: SampleServer) -> None:
    async def talk() -> None:
        async with assistant(on_both) as client:
            page = await use(client, "fetch_page", url=f"{site.url}birds/puffin")
            assert page.startswith("Title: ")
            assert f"URL: {site.url}birds/puffin" in page
            assert "Puffins dig." in page

            started = await use(client, "crawl_site", url=site.url, limit=15, wait=0)
            id = re.match(r"Job (\S+) \(site", started)[1]  # type: ignore[index]
            while "completed" not in (said := await use(client, "job", id=id, wait=60)):
                assert "running" in said or "queued" in said, said
            assert "done 15" in said
            pages = await use(client, "job_pages", id=id)
            listed = re.findall(r"^- (\S+)  (.+)$", pages, re.MULTILINE)
            assert len(listed) == 15
            texts = {}
            for address, title in listed:
                head, _, text = (await use(client, "read_page", id=id, url=address)).partition("\n\n")
                assert head.startswith(f"Title: {title}\nURL: {address}\nFetched: 20")
                assert len(text) > 10, "the content itself"
                texts[address] = text
            assert len({*texts.values()}) == 15, "each page its own"
            for word in ("puffin", "heron"):
                if f"{site.url}birds/{word}" in texts:
                    assert word in texts[f"{site.url}birds/{word}"].lower()
            part = await use(client, "read_page", id=id, url=listed[0][0], offset=20)
            assert (
                part.partition("\n\n")[2]
                == (await use(client, "read_page", id=id, url=listed[0][0])).partition("\n\n")[2][20:]
            )
            (line,) = [line for line in (await use(client, "jobs", status="completed")).splitlines() if id in line]
            assert re.fullmatch(rf"- {id}  site  completed  {re.escape(site.url)}  20\S+", line)
            failed = await use(client, "job_errors", id=id)
            assert re.match(
                rf"- {re.escape(site.url)}\S+  http_4\d\d; [1-9]\d* links to it, for example on http", failed
            ) or (failed == "Nothing failed.")
            found = await use(client, "map_site", url=site.url)
            assert "completed" in found.splitlines()[0]
            assert f"{site.url}birds/puffin" in found.splitlines()

    anyio.run(talk)
    assert {job["kind"] for job in on_both("jobs", "--json").json} == {"page", "site", "map"}, "in our own database"


def test_a_model_steers_a_job_and_learns_what_failed(silkline: Silkline, site: SampleServer) -> None:
    async def talk() -> None:
        async with assistant(silkline) as client:
            started = await use(client, "crawl_site", url=f"{site.url}nowhere", wait=60)
            id = re.match(r"Job (\S+) \(site", started)[1]  # type: ignore[index]
            while not re.search(r": (completed|failed)\b", said := await use(client, "job", id=id, wait=60)):
                assert "running" in said or "queued" in said, said
            assert re.search(r"failed [1-9]", said)
            assert f"- {site.url}nowhere  http_404" in await use(client, "job_errors", id=id)
            pages = await use(client, "job_pages", id=id)
            assert re.search(rf"^- {re.escape(site.url)}nowhere \(failed: http_404\)", pages, re.MULTILINE) or (
                f"{site.url}nowhere" not in pages
            )
            started = await use(client, "crawl_site", url=site.url, wait=0)
            id = re.match(r"Job (\S+) \(site", started)[1]  # type: ignore[index]
            said = await use(client, "steer_job", id=id, action="cancel")
            assert re.search(rf"Job {id} \(site \S+\): (cancelling|cancelled|completed)", said)

    anyio.run(talk)


def test_a_line_that_is_no_message_gets_an_error(silkline: Silkline) -> None:
    """And the lines after it are answered as usual."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    lines = {
        b"no JSON": (-32700, None),
        b"\xff\xfe": (-32700, None),
        b'{"jsonrpc": "2.0", "id": 1, "method"': (-32700, None),
        b"[" * 100_000: (-32700, None),
        b"[]": (-32600, None),
        b"{}": (-32600, None),
        b"7": (-32600, None),
        b'{"jsonrpc": "1.0", "id": 2, "method": "ping"}': (-32600, None),
        json.dumps({"jsonrpc": "2.0", "id": 3, "method": "initialize", "params": hello}).encode(): (None, 3),
        b'{"jsonrpc": "2.0", "id": [4], "method": 5}': (-32600, None),
        b"no JSON either": (-32700, None),
        b'{"jsonrpc": "2.0", "id": 6, "method": "ping"}': (None, 6),
    }
    command = silkline.command("mcp", "--server", "http://127.0.0.1:1")
    with subprocess.Popen(
        command,
        cwd=silkline.folder,
        env=silkline.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line, (code, id) in lines.items():
            process.stdin.write(line + b"\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert (answer.get("error", {}).get("code"), answer["id"]) == (code, id), line[:100]
        process.stdin.close()
        assert process.stdout.read() == b""
    assert process.returncode == 0


def test_its_server_has_a_token_that_nobody_else_knows(silkline: Silkline) -> None:
    """Another program of this machine finds the port, and is refused."""

    async def talk() -> None:
        async with assistant(silkline) as client:
            await use(client, "jobs")
            found = re.search(r"http://127\.0\.0\.1:(\d+)/", (silkline.folder / "mcp.log").read_text())
            assert found is not None
            stranger = HttpClient(int(found[1]))
            body = {"kind": "page", "url": "http://127.0.0.1/", "allow_private": ["0.0.0.0/0"]}
            stranger.post("/v1/jobs", body).problem(401, "unauthorized")
            stranger.get("/v1/jobs").problem(401, "unauthorized")

    anyio.run(talk)
    silkline("mcp", "--allow-private", "nonsense").refused(2, "expected CIDR[:PORT]")


def test_what_goes_wrong_is_told_to_the_model(silkline: Silkline, site: SampleServer) -> None:
    async def talk() -> None:
        async with assistant(silkline) as client:
            assert "http_404" in await refused(client, "fetch_page", url=f"{site.url}nowhere")
            assert "no job" in await refused(client, "job", id="nonsense")
            assert "nonsense" in await refused(client, "steer_job", id="nonsense", action="pause")
            assert "limit" in await refused(client, "crawl_site", url=site.url, limit=0)
            assert await use(client, "jobs", q="nothing like this") == "No job matches."

    anyio.run(talk)


def test_a_long_page_comes_in_parts(silkline: Silkline) -> None:
    words = "".join(f"<p>Paragraph {number} has a few words to make the page a long one.</p>" for number in range(2000))

    def respond(_: str, path: str) -> Any:
        from silkline.sample.site import SampleAnswer

        return SampleAnswer(
            200, {"Content-Type": "text/html"}, f"<title>Long</title><article>{words}</article>".encode()
        )

    async def talk(url: str) -> None:
        async with assistant(silkline) as client:
            offset, parts = 0, []
            while True:
                head, _, text = (await use(client, "fetch_page", url=url, offset=offset)).partition("\n\n")
                parts.append(text)
                if (more := re.search(r"continue with offset=(\d+)", head)) is None:
                    break
                offset = int(more[1])
            whole = "".join(parts)
            assert len(parts) > 2
            assert [int(number) for number in re.findall(r"Paragraph (\d+) has", whole)] == list(range(2000))

    with SampleServer(respond=respond) as long:
        anyio.run(talk, f"{long.url}long")


def test_nothing_is_left_of_it(silkline: Silkline) -> None:
    """Whether it ends in good order or is killed, its server ends, and a crawl goes back to the queue."""

    def ours() -> list[psutil.Process]:
        marks = str(silkline.folder)
        return [each for each in psutil.process_iter(["environ", "cmdline"]) if marks in str(each.info["environ"])]

    async def talk(kill: bool) -> None:
        async with assistant(silkline) as client:
            await use(client, "jobs")
            assert len(ours()) > 1
            if kill:
                (mcp,) = [each for each in ours() if "mcp" in each.info["cmdline"]]
                mcp.send_signal(signal.SIGKILL)
                mcp.wait(PATIENCE)

    for kill in (False, True):
        try:
            anyio.run(talk, kill)
        except* Exception:
            assert kill
        _, alive = psutil.wait_procs(ours(), timeout=PATIENCE)
        assert alive == []


def test_another_server(silkline: Silkline, tmp_path: Path) -> None:
    async def talk() -> None:
        async with assistant(silkline, "--server", "http://127.0.0.1:9") as client:
            tools = await client.list_tools()
            assert "fetch_page" in [tool.name for tool in tools.tools]

    anyio.run(talk)
    assert not (tmp_path / "data" / "silkline.db").exists()
    silkline("mcp", "--server", "nonsense").refused(2, "http://127.0.0.1:8700")


def test_the_server_of_an_assistant_gets_its_settings_as_a_value(silkline: Silkline, site: SampleServer) -> None:
    """Not through the environment, which other programs of this user can read and which its jobs would inherit."""
    place = silkline.folder / "named"

    async def talk() -> None:
        async with assistant(silkline, "--data", str(place)) as client:
            assert "Puffins dig." in await use(client, "fetch_page", url=f"{site.url}birds/puffin")
            found = [each for each in psutil.process_iter() if "--settings-from-stdin" in arguments_of(each)]
            (server,) = (each for each in found if each.cwd() == str(silkline.folder))
            assert server.environ().get("SILKLINE_DATA") != str(place)
            assert "SILKLINE_API_TOKEN" not in server.environ()

    anyio.run(talk)
    assert (place / "silkline.db").exists()
    assert not (silkline.folder / "data").exists()


def arguments_of(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
