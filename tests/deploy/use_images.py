"""`make image-test`: builds both images of the Dockerfile without Docker, starts them, and uses them.

It needs root and debootstrap. Each image runs as PID 1 with its own user, a read-only root and no capabilities; a pair
of virtual network cards connects the two. It prints what it saw, and fails at the first difference.
"""

import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import yaml

from silkline.model.job import NewJob, Status
from silkline.store import jobs, results
from silkline.store.opening import open_database
from tests.deploy.image_build import ImageBuild
from tests.support.container import Container, in_image_root
from tests.support.dockerfile import Image, image
from tests.support.supervisors import ENDLESS, eventually

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "a secret of the operator"
HERE, THERE = "10.77.0.1", "10.77.0.2"  # the addresses of the two containers
SETTINGS = {"SILKLINE_TEST_KINDS": "true", "SILKLINE_DISK_FREE_MIN": "0", "SILKLINE_API_TOKEN_FILE": "/data/token"}
SAMPLE_PORT = "8080"
ASK = """
import http.client, sys
connection = http.client.HTTPConnection("127.0.0.1", 9700)
connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {token}" for token in sys.argv[1:]})
print(connection.getresponse().status)
"""


def main() -> int:
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        print("make image-test: needs root and debootstrap (Debian: apt-get install debootstrap)", file=sys.stderr)
        return 1
    build = ImageBuild(ROOT, ROOT / "build" / "image")
    roots = {name: build.root(name) for name in ("silkline", "renderer")}
    images = {name: image(build.stages, name) for name in roots}
    for name, root in roots.items():
        size = subprocess.run(
            ["du", "--summarize", "--block-size=1M", root], capture_output=True, text=True, check=True
        )
        print(f"{name}: {size.stdout.split()[0]} MiB of files", flush=True)
    with tempfile.TemporaryDirectory(prefix="silkline-image-") as folder:
        place = Path(folder)
        place.chmod(0o755)
        with (
            started(images["renderer"], roots["renderer"], place / "renderer", {}) as renderer,
            started(
                images["silkline"],
                roots["silkline"],
                place / "silkline",
                {**SETTINGS, "SILKLINE_RENDERER_URL": f"http://{THERE}:9222"},
            ) as silkline,
        ):
            connect(silkline, renderer)
            try:
                check_both(images, silkline, renderer)
                check_silkline(silkline)
                check_worker(images["silkline"], roots["silkline"], place / "worker")
                check_rendering(silkline)
                check_sbom(silkline)
                check_drain(silkline, images["silkline"], place / "silkline")
                check_renderer_ends(renderer, images["renderer"])
            except BaseException:
                print(silkline.log, renderer.log, sep="\n---\n", file=sys.stderr)
                raise
    return 0


@contextmanager
def started(what: Image, root: Path, data: Path, more: dict[str, str]) -> Iterator[Container]:
    data.mkdir()
    (data / "token").write_text(TOKEN)
    (root / "data").mkdir(exist_ok=True)
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", **what.environment, **more}
    container = in_image_root(what.start, data, root, user=what.user, folder=what.folder, environment=environment)
    with closing(container):
        yield container


def connect(one: Container, other: Container) -> None:
    """A network of two: they reach each other and nothing else, as in the network of compose.yaml."""
    ends = f"ip link add eth0 netns {one.first} type veth peer name eth0 netns {other.first}"
    subprocess.run(ends.split(), check=True)
    for container, address in ((one, HERE), (other, THERE)):
        for command in (f"ip address add {address}/24 dev eth0", "ip link set eth0 up"):
            subprocess.run(["nsenter", f"--target={container.first}", "--net", *command.split()], check=True)


def check_both(images: dict[str, Image], *containers: Container) -> None:
    for container, (name, what) in zip(containers, images.items(), strict=True):
        check_confined(container, name, what)
        print(f"{name}: healthy; PID 1 is tini, uid {what.user}, no capabilities, read-only root, reaps", flush=True)


def check_confined(container: Container, name: str, what: Image) -> None:
    eventually(f"the health check of {name} passes", lambda: container.execute(*what.health).returncode == 0)
    seen = container.execute("sh", "-c", "id -u; id -g; cat /proc/1/comm; grep -E 'CapEff|CapPrm' /proc/1/status")
    none = "0" * 16
    assert seen.stdout.split() == [*what.user.split(":"), "tini", "CapPrm:", none, "CapEff:", none], seen
    for folder in ("/", "/etc", "/usr/bin", "/opt/silkline", "/var", "/run", "/dev"):
        assert container.execute("touch", f"{folder}/written").returncode != 0, folder
    assert container.execute("touch", "/tmp/written").returncode == 0
    container.execute("sh", "-c", "(sleep 0.1; touch /tmp/orphan) &")
    eventually("the orphan has ended", lambda: container.execute("test", "-e", "/tmp/orphan").returncode == 0)
    eventually("PID 1 has reaped the orphan", lambda: not container.unreaped())


def check_silkline(container: Container) -> None:
    demo = container.execute("silkline", "demo")
    assert re.search(r"\d+ pages stored", demo.stdout), demo
    print("silkline demo:", demo.stdout.splitlines()[0], flush=True)
    upgrade = container.execute("silkline", "db", "upgrade")
    assert upgrade.returncode == 0, upgrade
    assert "is at schema revision" in upgrade.stderr, upgrade
    doctor = container.execute("silkline", "doctor", "--json")
    checks = {each["name"]: each["level"] for each in json.loads(doctor.stdout)}
    assert "fail" not in checks.values(), doctor.stdout
    print("silkline doctor:", ", ".join(f"{name} {level}" for name, level in checks.items()), flush=True)


def check_worker(what: Image, root: Path, data: Path) -> None:
    """The command of the service `worker` in compose.yaml: its health check, and its metrics for the token only."""
    service = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["worker"]
    health = {"SILKLINE_HEALTH_URL": service["environment"]["SILKLINE_HEALTH_URL"]}
    as_worker = dataclasses.replace(what, start=[*what.start[:3], *service["command"]])
    with started(as_worker, root, data, {**SETTINGS, **health}) as worker:
        eventually("the health check of the worker passes", lambda: worker.execute(*what.health).returncode == 0)
        without, with_token = (worker.execute("python3", "-c", ASK, *token).stdout.strip() for token in ((), (TOKEN,)))
        assert (without, with_token) == ("401", "200"), worker.log
        assert worker.stop(getattr(signal, what.stop_signal)) == 0, worker.log
    print("worker: the command of compose.yaml is healthy, gives metrics to the token only, ends with 0", flush=True)


def check_rendering(container: Container) -> None:
    """The worker hands a page to the browser of the other container, which reaches the web through the worker only."""
    sample = subprocess.Popen(
        container.command("silkline", "demo", "--serve", "--port", SAMPLE_PORT), stdout=subprocess.PIPE, text=True
    )
    try:
        assert sample.stdout
        url = sample.stdout.readline().strip()
        got = container.execute("silkline", "fetch", url, "--render", "always", "--json")
        assert got.returncode == 0, got
        metadata = json.loads(got.stdout)["metadata"]
        assert metadata["rendered"] is True, metadata
        print(f"rendered in the other container: {url} in {metadata['render_seconds']} s", flush=True)
    finally:
        children = Path(f"/proc/{sample.pid}/task/{sample.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)  # the process inside; nsenter only waits for it
        sample.wait(60)
        if sample.stdout:
            sample.stdout.close()


def check_sbom(container: Container) -> None:
    printed = container.execute("python3", "/opt/silkline/sbom.py")
    components = {each["purl"].partition("@")[0]: each["version"] for each in json.loads(printed.stdout)["components"]}
    for wanted in ("pkg:pypi/silkline", "pkg:pypi/psycopg", "pkg:deb/debian/tini", "pkg:deb/debian/libc6"):
        assert wanted in components, (wanted, components)
    kinds = [sum(purl.startswith(kind) for purl in components) for kind in ("pkg:deb/", "pkg:pypi/")]
    print(f"SBOM: {kinds[0]} packages of Debian, {kinds[1]} of Python", flush=True)


def check_drain(container: Container, what: Image, data: Path) -> None:
    with closing(open_database(f"sqlite:///{data / 'silkline.db'}")) as database:
        job, _ = jobs.enqueue(database, NewJob("diagnostic", {"do": "work", **ENDLESS}))
        eventually("the job has results", lambda: results.count(database, job.id))
        code = container.stop(getattr(signal, what.stop_signal))
        ended = jobs.get(database, job.id)
        assert (code, ended.status, ended.crash_count) == (0, Status.QUEUED, 0), (code, ended)
    assert "1 running jobs save their checkpoints and go back to the queue" in container.log
    print("SIGTERM to PID 1: exit code 0; the running job saved its checkpoint and is in the queue", flush=True)


def check_renderer_ends(container: Container, what: Image) -> None:
    code = container.stop(getattr(signal, what.stop_signal))
    assert code in (0, 128 + signal.SIGTERM), code
    print(f"renderer: SIGTERM to PID 1 ended it, exit code {code}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
