"""The browser's process: found, started, watched, and gone without a trace.

It cannot outlive us. The kernel kills it when we die (render_launch.py), it ends by itself when its debugging pipe
does, the supervisor finds it by the mark in its environment, and `close` kills its process group. Its folder, in which
it keeps everything it writes, is removed with it; one that a `kill -9` left behind is removed by whoever starts a
browser next, which knows by a lock that nobody uses it any more.
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
_LONGEST_FOLDER: Final = 60  # the browser makes a socket below it, whose path may have 107 characters
_SMALL_SHM: Final = 512 << 20
_NOWHERE: Final = "http://127.0.0.1:9"
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")

_FEATURES_OFF: Final = (
    *("AcceptCHFrame", "AutofillServerCommunication", "BackForwardCache", "CertificateTransparencyComponentUpdater"),
    *("DialMediaRouteProvider", "InterestFeedContentSuggestions", "IsolateOrigins", "MediaRouter"),
    *("NetworkTimeServiceQuerying", "OptimizationHints", "PaintHolding", "Translate", "WebRtcHideLocalIpsWithMdns"),
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
    *("--disable-gpu", "--disable-gpu-shader-disk-cache", "--mute-audio", "--hide-scrollbars", "--no-pings"),
    *("--disable-background-timer-throttling", "--disable-renderer-backgrounding"),
    *("--disable-backgrounding-occluded-windows", "--disable-hang-monitor", "--disable-prompt-on-repost"),
    *("--disable-popup-blocking", "--disable-notifications", "--deny-permission-prompts", "--metrics-recording-only"),
    *("--password-store=basic", "--disable-search-engine-choice-screen", "--disable-dinosaur-easter-egg"),
    # Frames of a page in its own process: cheaper, and each page has a context, so a process, of its own anyway.
    "--disable-site-isolation-trials",
    # What is not text need not be loaded.
    *("--blink-settings=imagesEnabled=false", "--disable-remote-fonts", "--autoplay-policy=user-gesture-required"),
    # Each page has a proxy of ours. What belongs to no page leads nowhere, no name is ever resolved by the browser, and
    # what could pass by a proxy is off.
    *(f"--proxy-server={_NOWHERE}", "--proxy-bypass-list=<-loopback>", "--disable-quic"),
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    *(
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    ),
    f"--disable-features={','.join(_FEATURES_OFF)}",
)


def command_line(program: str, folder: str, user_agent: str) -> list[str]:
    """How the browser is started. Its sandbox is left off only where it cannot be had: as root."""
    flags = [program, *_FLAGS, f"--user-data-dir={folder}", f"--user-agent={user_agent}"]
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
    """Where one browser keeps what it writes, for as long as it lives."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        # Locked before it has its name: somebody who sweeps just now would take the folder for abandoned.
        nameless = self.path / f"{_LOCK}.new"
        self.lock = os.open(nameless, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        nameless.rename(self.path / _LOCK)

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.lock)
        _remove(self.path)


def sweep() -> int:
    """Remove the folders of browsers that are no more; how many there were."""
    return sum(_remove(path) for path in _abandoned())


def _abandoned() -> Iterator[Path]:
    for path in Path(tempfile.gettempdir()).glob(_PREFIX + "*"):
        with contextlib.suppress(OSError):
            if path.is_symlink() or path.stat().st_uid != os.geteuid():
                continue
            try:
                lock = os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            except FileNotFoundError:  # somebody is about to lock it, or was killed just then
                if time.time() - path.stat().st_mtime > _UNLOCKED_FOR:
                    yield path
                continue
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield path
            finally:
                os.close(lock)


def _remove(path: Path) -> bool:
    """Processes that are being killed may still write a file or two."""
    for _ in range(20):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            return True
        time.sleep(0.01)
    return False


class BrowserProcess:
    """One Chromium of our own, from its start to its end."""

    def __init__(self, process: subprocess.Popen[bytes], folder: BrowserFolder, conversation: Conversation) -> None:
        self._process = process
        self._folder = folder
        self.conversation = conversation

    @classmethod
    async def start(cls, program: str, user_agent: str) -> BrowserProcess:
        await asyncio.to_thread(sweep)
        folder = BrowserFolder()
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                process = _launch(command_line(program, str(folder.path), user_agent), theirs, folder)
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

    def end_large(self, pids: list[int], most: int) -> int:
        """Kill those processes of this browser that have taken too much memory; how many there were."""
        killed = 0
        for pid in pids:
            with contextlib.suppress(OSError, ValueError, IndexError):
                resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
                if resident > most and os.getpgid(pid) == self._process.pid:
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
        return killed

    def close(self) -> None:
        """Kill it with all its children, wait for it, and remove what it wrote."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self.conversation.close()
        self._process.wait()
        self._folder.remove()


def _launch(command: list[str], line: socket.socket, folder: BrowserFolder) -> subprocess.Popen[bytes]:
    """In a session, so a process group, of its own. Takes 2 ms."""
    handed = (line.fileno(), folder.lock)
    launcher = [sys.executable, "-I", "-S", str(Path(__file__).with_name("render_launch.py"))]
    return subprocess.Popen(  # noqa: S603 - what it starts is our choice
        [*launcher, str(os.getpid()), *map(str, handed), *command],
        pass_fds=handed,
        env=_environment(folder.path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _environment(folder: Path) -> dict[str, str]:
    """What a browser needs to know and no more: no passwords of ours, but the marks by which it is found."""
    kept = {
        name: os.environ[name] for name in ("PATH", "TZ", "FONTCONFIG_PATH", "LD_LIBRARY_PATH") if name in os.environ
    }
    marks = {
        name: value for name, value in os.environ.items() if name.startswith("SILKLINE_") and name.endswith("_MARK")
    }
    temporary = {"TMPDIR": str(folder)} if len(str(folder)) < _LONGEST_FOLDER else {}
    return {**kept, **marks, **temporary, "HOME": str(folder), "LANG": "C.UTF-8"}
