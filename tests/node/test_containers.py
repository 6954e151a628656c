"""compose.yaml and the Dockerfile agree with the broker and with each other; it takes no container engine to see."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import moldau
from moldau.core.config.broker import BrokerConfig
from moldau.core.config.environment import environment_settings
from moldau.core.config.load import load_config
from moldau.node.command import parse

yaml = pytest.importorskip("yaml")

PROJECT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((PROJECT / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
BROKERS = {name: service for name, service in SERVICES.items() if name.startswith("broker-")}
SERVERS = {name: service for name, service in SERVICES.items() if name.startswith("zookeeper-")}
DOCKERFILE = re.sub(r"\\\n\s*", " ", (PROJECT / "Dockerfile").read_text())
STORE = "MOLDAU_ZOOKEEPER_CONNECT"


def instruction(name: str) -> str:
    (found,) = re.findall(rf"^{name} (.*)$", DOCKERFILE, re.MULTILINE)
    return str(found)


def image_environment() -> dict[str, str]:
    return dict(word.split("=", 1) for word in shlex.split(instruction("ENV")))


def configuration(service: dict[str, Any]) -> BrokerConfig:
    environment = {**image_environment(), **service["environment"]}
    settings, strange = environment_settings(environment)
    assert strange == [], "these name no key"
    assert "zookeeper.connect" in settings
    return load_config(None, environment, {})


def test_there_are_three_of_each() -> None:
    assert (len(BROKERS), len(SERVERS), len(SERVICES)) == (3, 3, 6)


def test_the_image_starts_a_broker() -> None:
    command = json.loads(instruction("ENTRYPOINT"))
    assert command[:2] == ["moldau", "start"]
    parse(command[2:])
    config = load_config(None, image_environment(), {})
    (listener,) = config.listeners
    assert listener.port == int(instruction("EXPOSE"))
    assert f":{listener.port}" in instruction("HEALTHCHECK")


def test_the_image_has_the_python_that_the_project_needs() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    asked = tuple(map(int, re.findall(r"\d+", project["requires-python"])))
    given = tuple(map(int, re.findall(r"python:(\d+)\.(\d+)-slim", instruction("FROM"))[0]))
    assert given >= asked


def test_the_image_runs_as_nobody_in_particular() -> None:
    user = instruction("USER")
    assert user != "root"
    assert f" {user}" in re.findall(r"^RUN useradd (.*)$", DOCKERFILE, re.MULTILINE)[0]
    assert DOCKERFILE.index("USER ") < DOCKERFILE.index("ENTRYPOINT")


def test_what_is_copied_is_there_and_not_ignored() -> None:
    kept = {line[1:] for line in (PROJECT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {path for line in re.findall(r"^COPY (.*) \S+$", DOCKERFILE, re.MULTILINE) for path in line.split()}
    assert copied == kept
    assert all((PROJECT / path).exists() for path in copied)


def test_data_is_on_volumes() -> None:
    assert image_environment()["MOLDAU_LOG_DIRS"].startswith(instruction("VOLUME") + "/")
    for name, service in SERVICES.items():
        mounts = dict(volume.split(":") for volume in service["volumes"])
        assert set(mounts) <= set(COMPOSE["volumes"]), name
    for service in BROKERS.values():
        (mount,) = [volume.split(":")[1] for volume in service["volumes"]]
        assert mount == instruction("VOLUME")
        assert all(path.startswith(f"{mount}/") for path in service["environment"]["MOLDAU_LOG_DIRS"].split(","))
    used = [volume.split(":")[0] for service in SERVICES.values() for volume in service["volumes"]]
    assert sorted(used) == sorted(COMPOSE["volumes"]), "each is used, and by one"


@pytest.mark.parametrize("name", BROKERS)
def test_a_broker_listens_where_it_says(name: str) -> None:
    service = BROKERS[name]
    config = configuration(service)
    assert config.node_id == int(name.removeprefix("broker-"))
    inside, outside = config.listeners
    advertised = {each.name: (each.host, each.port) for each in config.advertised({}, name)}
    assert advertised == {"INSIDE": (name, inside.port), "OUTSIDE": ("localhost", outside.port)}
    assert config.text("inter.broker.listener.name") == "INSIDE"
    assert service["ports"] == [f"127.0.0.1:{outside.port}:{outside.port}"]
    assert service["healthcheck"]["test"][-1] == f"localhost:{inside.port}"


def test_brokers_do_not_share_what_is_their_own() -> None:
    for own in ("MOLDAU_NODE_ID", "MOLDAU_LISTENERS", "MOLDAU_ADVERTISED_LISTENERS"):
        assert len({service["environment"][own] for service in BROKERS.values()}) == len(BROKERS)


@pytest.mark.parametrize("service", BROKERS.values(), ids=BROKERS)
def test_brokers_find_the_ensemble(service: dict[str, Any]) -> None:
    metadata = configuration(service).metadata_service
    assert metadata is not None
    assert metadata.connect == service["environment"][STORE]
    servers, _, chroot = metadata.connect.partition("/")
    assert chroot
    assert [server.rpartition(":")[0] for server in servers.split(",")] == list(SERVERS)
    assert set(service["depends_on"]) == set(SERVERS)


@pytest.mark.parametrize("name", SERVERS)
def test_an_ensemble_knows_its_members(name: str) -> None:
    environment = SERVERS[name]["environment"]
    members = dict(member.split("=") for member in environment["ZOO_SERVERS"].split())
    assert members == {f"server.{number}": f"{host}:2888:3888;2181" for number, host in enumerate(SERVERS, start=1)}
    assert members[f"server.{environment['ZOO_MY_ID']}"].startswith(f"{name}:")
    for service in BROKERS.values():
        assert f"{name}:2181" in service["environment"][STORE]


def test_no_acknowledged_record_is_on_one_broker_alone() -> None:
    for service in BROKERS.values():
        config = configuration(service)
        assert config.int("default.replication.factor") == len(BROKERS)
        assert config.int("min.insync.replicas") == 2


def test_health_checks_ask_a_broker() -> None:
    checks = [json.loads(instruction("HEALTHCHECK").partition("CMD ")[2])]
    for service in BROKERS.values():
        kind, *words = service["healthcheck"]["test"]
        assert kind == "CMD"
        checks.append(words)
    assert {(tuple(words[:-1]), len(words)) for words in checks} == {
        (("moldau", "topics", "list", "--bootstrap-server"), 5)
    }, "each is the one that is tried here"
    with moldau.run() as broker:
        command = [sys.executable, "-m", *checks[0][:-1], broker.bootstrap_servers]
        assert subprocess.run(command, capture_output=True, check=False).returncode == 0
        broker.kill()
        assert subprocess.run(command, capture_output=True, check=False).returncode != 0
