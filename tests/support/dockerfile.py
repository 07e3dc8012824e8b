"""Reads our Dockerfile: its stages, the steps of each, and how the image of a stage is started."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

EXECUTED = ("RUN", "COPY", "WORKDIR")
KNOWN = {*EXECUTED, "FROM", "ARG", "ENV", "LABEL", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK"} | {
    "ENTRYPOINT",
    "CMD",
}


@dataclass(frozen=True)
class Step:
    """One instruction, without its line breaks."""

    word: str
    rest: str


@dataclass
class Stage:
    """What stands between two FROM lines, and the settings of the image that come of it and of its base."""

    name: str
    base: str
    steps: list[Step] = field(default_factory=list)


@dataclass(frozen=True)
class Image:
    """How a container of an image is started."""

    environment: Mapping[str, str]
    labels: Mapping[str, str]
    user: str
    folder: str
    start: list[str]
    health: list[str]
    volumes: list[str]
    stop_signal: str


def stages(path: Path) -> dict[str, Stage]:
    """The stages by name, in their order."""
    found: dict[str, Stage] = {}
    for step in _steps(path.read_text()):
        if step.word == "FROM":
            base, _, name = step.rest.partition(" AS ")
            found[name] = Stage(name, base)
        else:
            list(found.values())[-1].steps.append(step)
    return found


def image(all_stages: Mapping[str, Stage], name: str) -> Image:
    environment: dict[str, str] = {}
    labels: dict[str, str] = {}
    last: dict[str, str] = {}
    volumes = []
    for step in inherited(all_stages, name):
        if step.word == "ENV":
            environment.update(_pairs(step.rest, environment))
        elif step.word == "LABEL":
            labels.update(_pairs(step.rest, {}))
        elif step.word == "VOLUME":
            volumes.append(step.rest)
        last[step.word] = step.rest
    return Image(
        environment=environment,
        labels=labels,
        user=last["USER"],
        folder=last["WORKDIR"],
        start=[*json.loads(last["ENTRYPOINT"]), *json.loads(last.get("CMD", "[]"))],
        health=json.loads(last["HEALTHCHECK"].partition("CMD ")[2]),
        volumes=volumes,
        stop_signal=last["STOPSIGNAL"],
    )


def inherited(all_stages: Mapping[str, Stage], name: str) -> Iterator[Step]:
    """The steps of a stage, after those of the stages that it starts from."""
    stage = all_stages[name]
    if stage.base in all_stages:
        yield from inherited(all_stages, stage.base)
    yield from stage.steps


def _steps(text: str) -> Iterator[Step]:
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in re.sub(r"\\\n\s*", "", lines).splitlines():
        if line.strip():
            word, _, rest = line.strip().partition(" ")
            if word not in KNOWN:
                raise ValueError(f"the tests do not know the instruction {word}")
            yield Step(word, rest.strip())


def _pairs(text: str, known: Mapping[str, str]) -> dict[str, str]:
    pairs = (part.partition("=") for part in shlex.split(text))
    return {name: re.sub(r"\$(\w+)", lambda found: known.get(found[1], found[0]), value) for name, _, value in pairs}
