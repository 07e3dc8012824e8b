"""The program of the image `renderer`: runs a browser and forwards port 9222 to it.

Chromium listens on the loopback address only, also with --remote-debugging-address, so this program listens for the
workers. Silkline gives each page its own proxy, so a page can reach only what Silkline allows; requests that belong to
no page go to a proxy that does not exist.

Chromium's sandbox needs user namespaces, which containers forbid: the container is the sandbox. Run it without
capabilities, with a read-only root, without secrets, and in a network in which it reaches only workers (compose.yaml).
"""

import asyncio
import signal
import sys
from asyncio import StreamReader, StreamWriter

LISTEN, PORT, BROWSER_PORT = "0.0.0.0", 9222, 9223  # the network of the container decides who reaches it
CHUNK = 1 << 16
COMMAND = (
    *("/usr/bin/chromium-headless-shell", "--no-sandbox", f"--remote-debugging-port={BROWSER_PORT}"),
    *("--user-data-dir=/tmp/profile", "--disable-dev-shm-usage", "--disable-gpu", "--mute-audio", "--no-pings"),
    *("--disable-background-networking", "--disable-component-update", "--disable-breakpad", "--disable-sync"),
    # Silkline refuses images and fonts itself, except for screenshots and PDFs.
    *("--disable-quic", "--log-level=3"),
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    *("--proxy-server=http://127.0.0.1:9", "--proxy-bypass-list=<-loopback>", "about:blank"),
)


async def main() -> int:
    """Runs until the browser ends or a signal arrives. The exit code is 0 after a signal."""
    browser = await asyncio.create_subprocess_exec(*COMMAND, stdin=asyncio.subprocess.DEVNULL)
    asked = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, asked.set)
    async with await asyncio.start_server(forward, LISTEN, PORT):
        ended, told = asyncio.create_task(browser.wait()), asyncio.create_task(asked.wait())
        await asyncio.wait({ended, told}, return_when=asyncio.FIRST_COMPLETED)
        if ended.done():
            print(f"the browser ended with code {browser.returncode}", file=sys.stderr)
            return 1
        browser.terminate()
        await ended
        return 0


async def forward(reader: StreamReader, writer: StreamWriter) -> None:
    """One connection of a worker, until either side ends it."""
    try:
        there = await asyncio.open_connection("127.0.0.1", BROWSER_PORT)
    except OSError:  # the browser has not started yet
        writer.transport.abort()
        return
    copies = [asyncio.create_task(copy(reader, there[1])), asyncio.create_task(copy(there[0], writer))]
    await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
    for each in copies:
        each.cancel()
    for each in (writer, there[1]):
        each.transport.abort()


async def copy(reader: StreamReader, writer: StreamWriter) -> None:
    try:
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    except OSError:
        return


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
