"""compose.yaml, the Dockerfile and the systemd units fit to each other and to the program that they start."""

import configparser
import importlib
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

import silkline
from silkline.cli.group import silkline as program
from silkline.config import ALIASES, IN_FILE, PREFIX, SETTINGS, load
from silkline.model.duration import seconds_of
from tests.conftest import ROOT
from tests.support.dockerfile import image, inherited, stages

COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
STAGES = stages(ROOT / "Dockerfile")
OURS = ("migrate", "api", "worker")
IMAGES = {name: image(STAGES, name) for name in ("silkline", "renderer")}
# Variables of the images that are no settings.
FOR_THE_IMAGE = {"SILKLINE_HEALTH_URL"}
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))


def settings(variables: dict[str, str]) -> dict[str, str]:
    """The settings that these variables set, by name."""
    given = {name: value for name, value in variables.items() if name.startswith(PREFIX)}
    names = {name: name.removeprefix(PREFIX).removesuffix(IN_FILE).lower() for name in given.keys() - FOR_THE_IMAGE}
    assert set(names.values()) <= set(SETTINGS), names
    return {names[name]: value for name, value in given.items() if name in names}


def parsed(arguments: list[str]) -> dict[str, Any]:
    """The options that our command line reads from these arguments; it fails if one does not exist."""
    command: click.Command = program
    context = click.Context(program, info_name="silkline")
    rest = list(arguments)
    while isinstance(command, click.Group):
        name = rest.pop(0)
        found = command.get_command(context, name)
        assert found is not None, name
        command = found
    return dict(command.make_context("silkline", rest, parent=context).params)


def test_every_part_is_there() -> None:
    assert set(SERVICES) == {"postgres", "migrate", "api", "worker", "renderer", "prometheus", "grafana"}
    worker = SERVICES["worker"]
    assert (worker["deploy"]["replicas"], worker["restart"]) == (5, "unless-stopped")
    assert SERVICES["migrate"]["restart"] == "no"
    for name in ("api", "worker"):
        assert SERVICES[name]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_confined_and_limited(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory", "pids"}
    assert "privileged" not in service
    for port in service.get("ports", []):
        assert re.match(r"\$\{\w+:-127\.0\.0\.1\}:", port), "this machine only, unless told"


@pytest.mark.parametrize("name", OURS)
def test_our_services_start_a_command_that_exists_with_settings_that_exist(name: str) -> None:
    service = SERVICES[name]
    parsed(service["command"])
    given = settings(service["environment"])
    assert given["database_url"] == "/run/secrets/database_url"
    for variable, value in service["environment"].items():
        if variable.endswith(IN_FILE):
            assert Path(value).name in service["secrets"], variable
    plain = {name: shown(value) for name, value in given.items() if not value.startswith("/run/secrets/")}
    load(plain, {}, ROOT / "nowhere")
    assert service["user"] == IMAGES["silkline"].user
    assert service.get("build", {"target": "silkline"})["target"] == "silkline"


def shown(value: str) -> str:
    """A value with the defaults of its variables."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value)


def test_a_worker_has_time_to_drain_and_memory_for_its_slots() -> None:
    worker = SERVICES["worker"]
    given = settings(worker["environment"])
    assert seconds_of(worker["stop_grace_period"]) > seconds_of(given["grace_period"])
    memory = int(shown(given["slots"])) * int(shown(given["memory_limit"]))
    assert memory < int(worker["deploy"]["resources"]["limits"]["memory"].removesuffix("g")) << 30


def test_each_replica_has_a_data_directory_of_its_own() -> None:
    """The metrics of a data directory count once: shared by five workers, every page would count five times."""
    assert SERVICES["worker"]["volumes"] == IMAGES["silkline"].volumes == ["/data"]


def test_the_browser_reaches_only_workers() -> None:
    assert SERVICES["renderer"]["networks"] == ["rendering"]
    assert COMPOSE["networks"]["rendering"] == {"internal": True}
    assert [name for name, service in SERVICES.items() if "rendering" in service["networks"]] == ["worker", "renderer"]
    assert "secrets" not in SERVICES["renderer"]
    assert "web" not in SERVICES["postgres"]["networks"]


def test_the_ports_are_those_that_the_images_listen_on() -> None:
    exposed = {step.rest for name in IMAGES for step in inherited(STAGES, name) if step.word == "EXPOSE"}
    assert exposed == {"8700 9700", "9222"}
    assert parsed(SERVICES["api"]["command"])["port"] == 8700
    assert parsed(IMAGES["silkline"].start[3:])["port"] == 8700
    assert SERVICES["api"]["environment"]["SILKLINE_RENDERER_URL"] == "http://renderer:9222"
    scraped = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text())["scrape_configs"]
    (target,) = scraped[0]["static_configs"][0]["targets"]
    assert target in SERVICES["api"]["environment"]["SILKLINE_API_HOSTS"].split(",")
    worker = scraped[1]["dns_sd_configs"][0]
    assert (worker["names"], worker["port"]) == (["worker"], parsed(SERVICES["worker"]["command"])["metrics_port"])
    assert f":{worker['port']}/" in SERVICES["worker"]["environment"]["SILKLINE_HEALTH_URL"]


def test_the_secrets_are_those_that_the_script_makes(tmp_path: Path) -> None:
    script = tmp_path / "deploy" / "make-secrets.sh"
    script.parent.mkdir()
    shutil.copy(ROOT / "deploy" / "make-secrets.sh", script)
    for _ in range(2):  # the second time it changes nothing
        subprocess.run([script], check=True, capture_output=True)
        made = {path.name: path.read_text() for path in (script.parent / "secrets").iterdir()}
    assert {f"deploy/secrets/{name}" for name in made} == {each["file"] for each in COMPOSE["secrets"].values()}
    assert len({*made.values()}) == 4
    assert made["database_url"] == f"postgresql://silkline:{made['database_password']}@postgres/silkline"
    assert (script.parent / "secrets").stat().st_mode & 0o077 == 0
    assert "/deploy/secrets/" in (ROOT / ".gitignore").read_text().splitlines()


def test_every_variable_is_in_the_example() -> None:
    used = set(re.findall(r"\$\{(\w+)", (ROOT / "compose.yaml").read_text()))
    example = re.findall(r"^(\w+)=(.*)$", (ROOT / ".env.example").read_text(), re.MULTILINE)
    assert {name for name, _ in example} == used
    defaults = dict(re.findall(r"\$\{(\w+):-([^}]*)\}", (ROOT / "compose.yaml").read_text()))
    assert dict(example) == defaults


def test_every_mounted_file_exists() -> None:
    mounted = [
        volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", []) if ":" in volume
    ]
    files = [source for source in mounted if source.startswith("./")]
    assert len(files) >= 4
    assert [source for source in files if not (ROOT / source).exists()] == []
    assert {source for source in mounted if not source.startswith("./")} == set(COMPOSE["volumes"])


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_says_what_it_is_and_runs_as_an_ordinary_user(name: str) -> None:
    found = IMAGES[name]
    assert found.start[:2] == ["/usr/bin/tini", "--"]
    assert found.user == "10001:10001"
    assert found.stop_signal == "SIGTERM"
    assert found.health[-1] == "/opt/silkline/healthcheck.py"
    wanted = {"title", "description", "source", "licenses", "version", "revision"}
    assert {f"org.opencontainers.image.{each}" for each in wanted} <= set(found.labels)
    assert f"ARG VERSION={silkline.__version__}\n" in (ROOT / "Dockerfile").read_text()
    settings(dict(found.environment))


def test_the_build_sees_every_file_that_it_copies_and_no_more() -> None:
    copied = set()
    for stage in STAGES.values():
        for step in stage.steps:
            if step.word == "COPY" and not step.rest.startswith("--from="):
                copied |= set(shlex.split(step.rest)[:-1])
    seen = (ROOT / ".dockerignore").read_text().splitlines()
    assert {line.removeprefix("!") for line in seen if line.startswith("!")} == copied
    assert [path for path in copied if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_starts_a_command_that_exists_and_lets_it_drain(path: Path) -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(path)
    service = unit["Service"]
    command = shlex.split(service["ExecStart"])
    assert command[0] == "/opt/silkline/bin/silkline"
    parsed(command[1:])
    assert float(service["TimeoutStopSec"]) > SETTINGS["grace_period"].default
    variables = dict(each.split("=", 1) for each in re.findall(r"^Environment=(.+)$", path.read_text(), re.MULTILINE))
    given = settings(variables)
    credentials = re.findall(r"^LoadCredential=(\w+):", path.read_text(), re.MULTILINE)
    assert {given[name].removeprefix("%d/") for name in credentials} == set(credentials)
    assert given["data"] == service["WorkingDirectory"] == f"/var/lib/{service['StateDirectory']}"


def test_no_variable_of_another_tool_is_used() -> None:
    for service in SERVICES.values():
        assert not set(ALIASES.values()) & set(service.get("environment", {}))


@pytest.mark.parametrize("name", ["tests.deploy.use_images", "tests.deploy.query_dashboards", "tests.support.release"])
def test_the_programs_of_the_long_tests_can_be_imported(name: str) -> None:
    """The suite does not run them, but it notices when the code that they use has moved."""
    assert callable(importlib.import_module(name).main)
