"""Machines with networks of their own: network namespaces, each joined to the namespace of a web by a cable of its own.

A machine reaches the web, which has all addresses of 10.0.0.0/8, and nothing else: neither the internet nor the other
machines. PostgreSQL is reached through a socket in the file system. It needs root.
"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from tests.support.supervisors import LIBC, eventually

WEB_NETWORK = "10"
NONE = "plain processes: network namespaces need root"


class Network:
    """One namespace. It exists as long as its first process, which dies with the tests."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            ["unshare", "--net", "sleep", "infinity"],
            stdin=subprocess.DEVNULL,
            preexec_fn=lambda: LIBC.prctl(1, signal.SIGKILL),
        )
        ours = Path("/proc/self/ns/net").readlink()
        theirs = Path(f"/proc/{self.process.pid}/ns/net")
        eventually("the namespace exists", lambda: theirs.readlink() != ours)
        self.run("ip link set lo up")

    @property
    def inside(self) -> tuple[str, ...]:
        """A command that runs another one in this namespace, as the same process."""
        return ("nsenter", f"--net=/proc/{self.process.pid}/ns/net", "--")

    def run(self, command: str) -> None:
        subprocess.run([*self.inside, *command.split()], check=True, capture_output=True)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


class Networks:
    """The namespace of the web, and those of some machines."""

    def __init__(self, machines: int) -> None:
        self.web = Network()
        self.machines = [Network() for _ in range(machines)]
        self.web.run(f"ip route add local {WEB_NETWORK}.0.0.0/8 dev lo")
        for number, machine in enumerate(self.machines):
            cable = f"ip link add m{number} netns {self.web.process.pid} type veth peer name web netns"
            subprocess.run([*cable.split(), str(machine.process.pid)], check=True)
            for network, device, place in ((self.web, f"m{number}", 1), (machine, "web", 2)):
                network.run(f"ip address add 192.168.{number}.{place}/24 dev {device}")
                network.run(f"ip link set {device} up")
            machine.run(f"ip route add {WEB_NETWORK}.0.0.0/8 via 192.168.{number}.1")

    def close(self) -> None:
        for network in (self.web, *self.machines):
            network.close()


def can_make_networks() -> bool:
    """Whether this process may make namespaces and cables between them."""
    if os.geteuid() != 0:
        return False
    try:
        Networks(1).close()
    except (OSError, subprocess.CalledProcessError):
        return False
    return True
