"""The browser process: starts it, limits its memory, ends it and removes its files.

The browser cannot outlive this process. The kernel kills it when this process dies (render_launch.py). It ends itself
when its debugging pipe is closed. If both fail, the browser becomes a child of the supervisor, which kills it
(service/attempts.py) unless its environment has the tag of a running attempt. `close` kills its process group. All
files of the browser are in one folder, which is removed with it. After a `kill -9` the folder remains; the next process
that starts a browser removes it, if no process holds its lock.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from silkline.fetch.render_cdp import Conversation, PipeLine

_PREFIX: Final = "silkline-browser-"
_LOCK: Final = "in-use"
_UNLOCKED_FOR: Final = 60.0
_LONGEST_FOLDER: Final = 60  # the browser creates a socket in it, and the path of a socket has at most 107 characters
_SMALL_SHM: Final = 512 << 20
_NOWHERE: Final = "http://127.0.0.1:9"

_FEATURES_OFF: Final = (
    *("AcceptCHFrame", "AutofillServerCommunication", "BackForwardCache", "CertificateTransparencyComponentUpdater"),
    *("DialMediaRouteProvider", "InterestFeedContentSuggestions", "IsolateOrigins", "MediaRouter"),
    *(
        "NetworkTimeServiceQuerying",
        "OptimizationHints",
        "PaintHolding",
        "Prerender2FallbackPrefetchSpecRules",
        "Translate",
        "WebRtcHideLocalIpsWithMdns",
    ),
    *("site-per-process",),
)
_FLAGS: Final = (
    *("--headless=new", "--remote-debugging-pipe", "--no-first-run", "--no-default-browser-check"),
    *("--no-startup-window", "--disable-background-networking", "--disable-component-update"),
    *("--disable-default-apps", "--disable-extensions", "--disable-sync", "--disable-breakpad"),
    *(
        "--disable-crash-reporter",
        "--disable-domain-reliability",
        "--disable-client-side-phishing-detection",
    ),
    *("--disable-gpu-shader-disk-cache", "--mute-audio", "--hide-scrollbars", "--no-pings"),
    # No WebGL. Without a graphics card its textures are in the memory of the GPU process, which belongs to no page.
    # `--disable-3d-apis` alone leaves it in an OffscreenCanvas. A canvas with 2D, screenshots and PDFs do not need it.
    *("--disable-gpu", "--disable-software-rasterizer", "--disable-3d-apis"),
    *("--disable-background-timer-throttling", "--disable-renderer-backgrounding"),
    *("--disable-backgrounding-occluded-windows", "--disable-hang-monitor", "--disable-prompt-on-repost"),
    # Popups are refused before they run: nothing would limit their requests. Those of script need no blocker.
    *(
        "--block-new-web-contents",
        "--disable-popup-blocking",
        "--disable-notifications",
        "--deny-permission-prompts",
        "--metrics-recording-only",
    ),
    *("--password-store=basic", "--disable-search-engine-choice-screen", "--disable-dinosaur-easter-egg"),
    # Frames run in the process of their page. This is cheaper, and each page has its own context and process anyway.
    "--disable-site-isolation-trials",
    "--autoplay-policy=user-gesture-required",
    # Each page has its own proxy. Requests that belong to no page fail, the browser resolves no names, and features
    # that can bypass a proxy are off.
    *(f"--proxy-server={_NOWHERE}", "--proxy-bypass-list=<-loopback>", "--disable-quic"),
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    *(
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    ),
    f"--disable-features={','.join(_FEATURES_OFF)}",
)


# Do not load content that is not text.
_ONLY_TEXT: Final = ("--blink-settings=imagesEnabled=false", "--disable-remote-fonts")


def command_line(program: str, folder: str, user_agent: str, *, pictures: bool = False) -> list[str]:
    """The command that starts the browser. Its sandbox is off only for root, where it does not work."""
    flags = [program, *_FLAGS, f"--user-data-dir={folder}", f"--user-agent={user_agent}"]
    if not pictures:
        flags += _ONLY_TEXT
    if os.geteuid() == 0:
        flags.append("--no-sandbox")
    try:
        shared = os.statvfs("/dev/shm")  # noqa: S108
        if shared.f_bavail * shared.f_frsize < _SMALL_SHM:
            flags.append("--disable-dev-shm-usage")
    except OSError:
        flags.append("--disable-dev-shm-usage")
    return flags


class BrowserFolder:
    """The folder for all files of one browser. It is removed with the browser."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        # Lock the file before its rename. Otherwise a concurrent `sweep` would remove the folder as abandoned.
        nameless = self.path / f"{_LOCK}.new"
        self.lock = os.open(nameless, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        nameless.rename(self.path / _LOCK)

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.lock)
        _remove(self.path)


def sweep() -> int:
    """Remove the folders of ended browsers, and return their number."""
    return sum(_remove(path) for path in _abandoned())


def _abandoned() -> Iterator[Path]:
    for path in Path(tempfile.gettempdir()).glob(_PREFIX + "*"):
        with contextlib.suppress(OSError):
            if path.is_symlink() or path.stat().st_uid != os.geteuid():
                continue
            try:
                lock = os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            except FileNotFoundError:  # its process will lock it soon, or was killed before
                if time.time() - path.stat().st_mtime > _UNLOCKED_FOR:
                    yield path
                continue
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield path
            finally:
                os.close(lock)


def _remove(path: Path) -> bool:
    """Remove a folder. Tries several times, because processes that are being killed may still write files."""
    for _ in range(20):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            return True
        time.sleep(0.01)
    return False


class BrowserProcess:
    """A Chromium process that we started."""

    def __init__(self, process: subprocess.Popen[bytes], folder: BrowserFolder, conversation: Conversation) -> None:
        self._process = process
        self._folder = folder
        self.conversation = conversation

    @classmethod
    async def start(cls, program: str, user_agent: str, *, pictures: bool = False) -> BrowserProcess:
        await asyncio.to_thread(sweep)
        folder = BrowserFolder()
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                command = command_line(program, str(folder.path), user_agent, pictures=pictures)
                process = _launch(command, theirs, folder)
            except BaseException:
                ours.close()
                folder.remove()
                raise
        browser = cls(process, folder, Conversation())
        try:
            await PipeLine(browser.conversation).open(ours)
        except BaseException:
            ours.close()
            browser.close()
            raise
        return browser

    def end(self, pid: int) -> bool:
        """Kill one process of this browser. False: it is not, or no longer, a process of this browser."""
        with contextlib.suppress(OSError):
            if os.getpgid(pid) == self._process.pid:
                os.kill(pid, signal.SIGKILL)
                return True
        return False

    def kill(self) -> None:
        """Kill the browser with all its children at once."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self.conversation.close()

    def close(self) -> None:
        """Kill the browser with all its children, wait for it, and remove its files."""
        self.kill()
        self._process.wait()
        self._folder.remove()


def _launch(command: list[str], line: socket.socket, folder: BrowserFolder) -> subprocess.Popen[bytes]:
    """Start the browser in its own session and process group. Takes 2 ms."""
    handed = (line.fileno(), folder.lock)
    launcher = [sys.executable, "-I", "-S", str(Path(__file__).with_name("render_launch.py"))]
    return subprocess.Popen(  # noqa: S603 - we choose the command
        [*launcher, str(os.getpid()), *map(str, handed), *command],
        pass_fds=handed,
        env=_environment(folder.path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _environment(folder: Path) -> dict[str, str]:
    """The environment of a browser: without our secrets, but with the tags by which the supervisor finds it."""
    kept = {
        name: os.environ[name] for name in ("PATH", "TZ", "FONTCONFIG_PATH", "LD_LIBRARY_PATH") if name in os.environ
    }
    tags = {
        name: value for name, value in os.environ.items() if name.startswith("SILKLINE_") and name.endswith("_MARK")
    }
    temporary = {"TMPDIR": str(folder)} if len(str(folder)) < _LONGEST_FOLDER else {}
    return {**kept, **tags, **temporary, "HOME": str(folder), "LANG": "C.UTF-8"}
