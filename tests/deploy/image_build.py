"""Executes the Dockerfile without Docker, as root: each stage is a folder, made from Debian packages by debootstrap.

The steps, their order and their environment come from the Dockerfile itself. Two things come from this machine: the
base image (debootstrap's minimal variant, with Debian's security updates), and the Python packages, because the mirror
that pip uses here may not be reachable from the inside.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.dockerfile import Stage, Step, stages

DEBIAN = re.compile(r"debian:(\w+)-slim")
WHEELS = "mnt"  # an empty folder of every Debian; the wheels are mounted there during a step
STEP = f"""
set -eu
mount --make-rprivate /
mount --rbind /dev "$1/dev"
mount -t proc proc "$1/proc"
mount -t tmpfs tmpfs "$1/tmp"
mount --bind "$2" "$1/{WHEELS}"
root=$1
shift 2
exec chroot "$root" env --ignore-environment "$@"
"""
# Debian's slim images leave the same files out.
SLIM = ("usr/share/doc", "usr/share/man", "usr/share/info", "usr/share/locale", "var/cache/apt", "var/lib/apt/lists")


class ImageBuild:
    """Folders of stages below one folder. A stage that exists is not built again."""

    def __init__(self, project: Path, folder: Path) -> None:
        self._project, self._folder = project, folder
        self.stages = stages(project / "Dockerfile")
        folder.mkdir(parents=True, exist_ok=True)

    def root(self, name: str) -> Path:
        """The root file system of a stage."""
        stage, place = self.stages[name], self._folder / name
        if not place.exists():
            base = self.root(stage.base) if stage.base in self.stages else self._debian(stage.base)
            unfinished = self._folder / f"{name}.unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            _run("cp", "--archive", "--reflink=auto", base, unfinished)
            self._execute(stage, unfinished)
            unfinished.rename(place)
        return place

    def _debian(self, image: str) -> Path:
        match = DEBIAN.fullmatch(image)
        if match is None:
            raise ValueError(f"{image} is not an image of Debian")
        place = self._folder / "debian"
        if not place.exists():
            unfinished = self._folder / "debian.unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            print(f"debootstrap {match[1]}", flush=True)
            _run("debootstrap", "--variant=minbase", match[1], unfinished)
            # The security updates lie beside the archive that debootstrap used.
            sources = unfinished / "etc" / "apt" / "sources.list"
            _, mirror, *_ = sources.read_text().split()
            updates = f"deb {mirror.rstrip('/')}-security {match[1]}-security main\n"
            sources.write_text(sources.read_text().rstrip() + "\n" + updates)
            shutil.copy("/etc/resolv.conf", unfinished / "etc" / "resolv.conf")
            for left_out in SLIM:
                shutil.rmtree(unfinished / left_out, ignore_errors=True)
            unfinished.rename(place)
        return place

    def _execute(self, stage: Stage, root: Path) -> None:
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        folder = "/"
        for step in self._with_settings_of_base(stage):
            if step.word in ("ENV", "ARG"):
                pairs = (part.partition("=") for part in shlex.split(step.rest))
                environment.update({name: value for name, given, value in pairs if given})
        for step in stage.steps:
            print(f"{stage.name}: {step.word} {step.rest[:110]}", flush=True)
            if step.word == "WORKDIR":
                folder = step.rest
                (root / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
            elif step.word == "COPY":
                self._copy(step, root, folder)
            elif step.word == "RUN":
                self._step(root, folder, environment, ["/bin/sh", "-c", step.rest])

    def _with_settings_of_base(self, stage: Stage) -> list[Step]:
        base = self.stages.get(stage.base)
        return [*(base.steps if base else []), *stage.steps]

    def _copy(self, step: Step, root: Path, folder: str) -> None:
        *sources, target = shlex.split(step.rest)
        origin = self._project
        if sources[0].startswith("--from="):
            origin = self.root(sources.pop(0).partition("=")[2])
        place = root / (Path(folder) / target).as_posix().lstrip("/")
        for source in (origin / each.lstrip("/") for each in sources):
            if source.is_dir():
                left_out = shutil.ignore_patterns("__pycache__") if origin == self._project else None
                shutil.copytree(source, place, symlinks=True, ignore=left_out)
                continue
            into = place / source.name if target.endswith("/") or len(sources) > 1 else place
            into.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, into)

    def _step(self, root: Path, folder: str, environment: Mapping[str, str], command: Sequence[str]) -> None:
        given = {
            **environment,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": f"/{WHEELS}",
            "DEBIAN_FRONTEND": "noninteractive",
        }
        proxies = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
        variables = [f"{name}={value}" for name, value in {**proxies, **given}.items()]
        script = ["sh", "-c", STEP, "step", str(root), str(self._wheels()), f"--chdir={folder}", *variables]
        _run("unshare", "--mount", "--pid", "--fork", "--kill-child", *script, *command)

    def _wheels(self) -> Path:
        place = self._folder / "wheels"
        if not place.exists():
            pinned = str(self._project / "requirements" / "base.txt")
            download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
            _run(*download, "--require-hashes", "--dest", place, "--requirement", pinned)
        return place


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))[-400:]}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
