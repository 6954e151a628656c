"""The fixtures as another project has them: pytest in a process of its own, on a test file of that project."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

RUN_S_MAX = 120.0

A_PROJECT = """
import pytest

@pytest.fixture(scope="session")
def moldau_options():
    return {"overrides": {"num.partitions": 3}}
"""

ITS_TESTS = """
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

def test_the_shared_broker(moldau_broker, moldau_bootstrap_servers, moldau_topic):
    assert moldau_broker.bootstrap_servers == moldau_bootstrap_servers
    producer = Producer({"bootstrap.servers": moldau_bootstrap_servers})
    producer.produce(moldau_topic, b"hello")
    assert producer.flush(30) == 0
    metadata = AdminClient({"bootstrap.servers": moldau_bootstrap_servers}).list_topics(timeout=30)
    assert len(metadata.topics[moldau_topic].partitions) == 3

def test_a_broker_of_its_own(moldau_broker, moldau_run):
    assert moldau_run(overrides={"num.partitions": 1}).port != moldau_broker.port
"""

WITH_SERVICES = """
import json
import urllib.request

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

def test_a_registry(moldau_registry):
    with SchemaRegistryClient(moldau_registry.settings) as client:
        assert client.register_schema("orders-value", Schema('"string"', "AVRO")) == 1

def test_a_rest_proxy(moldau_rest, moldau_registry, moldau_broker, moldau_topic):
    moldau_broker.create_topic(moldau_topic)
    assert moldau_rest.url != moldau_registry.url
    with urllib.request.urlopen(moldau_rest.url + "/topics", timeout=30) as answer:
        assert moldau_topic in json.load(answer)
"""

FAILING = """
import moldau
import pytest

@pytest.fixture
def own():
    with moldau.run() as broker:
        broker.create_topic("of-its-own")
        yield broker

def test_shared(moldau_broker, moldau_bootstrap_servers):
    moldau_broker.create_topic("shared-topic")
    assert False

def test_with_its_address_only(moldau_bootstrap_servers):
    assert False

def test_started(moldau_run):
    broker = moldau_run(overrides={"num.partitions": 7})
    broker.create_topic("started-topic")
    for number in range(200):
        broker.create_topic(f"t-{number}")
    broker.kill()
    assert False

def test_own(own):
    assert False

@pytest.fixture
def handed_on(moldau_run):
    return moldau_run()

def test_handed_on(handed_on):
    handed_on.create_topic("handed-on")
    assert False

def test_fine(moldau_broker):
    moldau_broker.create_topic("fine-topic")
"""

UNRELATED = """
import sys

def test_nothing_of_the_broker_is_loaded():
    loaded = {name for name in sys.modules if name.startswith(("moldau", "confluent_kafka"))}
    assert loaded == {"moldau", "moldau.pytest_plugin"}
"""


def run_pytest(project: Path) -> str:
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", str(project)],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=RUN_S_MAX,
        check=False,
    )
    return finished.stdout + finished.stderr


def test_a_project_gets_a_broker_by_naming_a_fixture(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(A_PROJECT)
    (tmp_path / "test_project.py").write_text(ITS_TESTS)
    assert "2 passed" in run_pytest(tmp_path)


def test_a_registry_and_a_rest_proxy_are_fixtures(tmp_path: Path) -> None:
    (tmp_path / "test_project.py").write_text(WITH_SERVICES)
    assert "2 passed" in run_pytest(tmp_path)


def test_a_project_that_uses_none_of_it_pays_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_unrelated.py").write_text(UNRELATED)
    assert "1 passed" in run_pytest(tmp_path)


def test_a_failed_test_shows_the_log_of_its_brokers(tmp_path: Path) -> None:
    (tmp_path / "test_failing.py").write_text(FAILING)
    printed = run_pytest(tmp_path)
    assert "5 failed, 1 passed" in printed
    reports = dict(re.findall(r"^_+ (test_\w+) _+$(.*?)(?=^_+ test_|^=+ short)", printed, re.MULTILINE | re.DOTALL))
    assert "created topic shared-topic: partitions=1" in reports["test_shared"]
    assert "created topic shared-topic" in reports["test_with_its_address_only"], "the broker is the session's"
    assert "created topic t-199" in reports["test_started"]
    assert "created topic started-topic" not in reports["test_started"], "only the last lines"
    assert re.search(r"Moldau broker EmbeddedBroker\(127.0.0.1:\d+, exit code -9", reports["test_started"])
    assert reports["test_own"].count("created topic of-its-own") == 1
    assert "shared-topic" not in reports["test_own"]
    assert reports["test_handed_on"].count("created topic handed-on") == 1
    assert "[the last of 20" in reports["test_started"]
    assert "[the last of" not in reports["test_handed_on"], "it is all there"
