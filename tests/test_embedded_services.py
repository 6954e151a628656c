"""A schema registry and a REST proxy beside embedded brokers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

import moldau
from moldau.embedded.services import Service
from tests.cluster.asking import until

TEXT = Schema('"string"', "AVRO")


@pytest.fixture(scope="module", params=["open", "secure"])
def broker(request: pytest.FixtureRequest) -> Iterator[moldau.EmbeddedBroker]:
    with moldau.run(registry=True, rest=True, secure=request.param == "secure") as started:
        yield started


def test_a_schema_is_registered_by_the_settings_that_a_service_tells(broker: moldau.EmbeddedBroker) -> None:
    with SchemaRegistryClient(broker.registry.settings) as client:
        known = client.register_schema("orders-value", TEXT)
        assert client.get_schema(known).schema_str == TEXT.schema_str


def test_the_rest_proxy_knows_the_registry_beside_it(broker: moldau.EmbeddedBroker) -> None:
    content = {"value_schema": TEXT.schema_str, "records": [{"value": "two coffees"}]}
    broker.create_topic("drinks")
    answer = post(broker.rest, "/topics/drinks", content, "application/vnd.kafka.avro.v2+json")
    assert answer["offsets"][0]["error_code"] is None
    with SchemaRegistryClient(broker.registry.settings) as client:
        assert "drinks-value" in client.get_subjects()


def test_who_has_no_password_is_not_let_in(broker: moldau.EmbeddedBroker) -> None:
    if broker.login is None:
        pytest.skip("nobody logs in to an open one")
    settings = {**broker.registry.settings, "basic.auth.user.info": "admin:guessed"}
    with SchemaRegistryClient(settings) as client, pytest.raises(SchemaRegistryError) as refused:
        client.get_subjects()
    assert refused.value.http_status_code == 401


def test_secrets_stand_on_no_command_line(broker: moldau.EmbeddedBroker) -> None:
    if broker.login is None:
        pytest.skip("an open one has no secrets")
    for each in (broker.registry, broker.rest):
        assert broker.login.password not in Path(f"/proc/{each.pid}/cmdline").read_text()


def post(service: Service, path: str, content: object, media_type: str) -> dict[str, list[dict[str, object]]]:
    import base64
    import ssl

    request = urllib.request.Request(service.url + path, json.dumps(content).encode(), {"Content-Type": media_type})
    context = None
    if "ssl.ca.location" in service.settings:
        context = ssl.create_default_context(cafile=service.settings["ssl.ca.location"])
        who = base64.b64encode(service.settings["basic.auth.user.info"].encode()).decode()
        request.add_header("Authorization", f"Basic {who}")
    with urllib.request.urlopen(request, timeout=30, context=context) as answer:
        found: dict[str, list[dict[str, object]]] = json.load(answer)
    return found


def test_without_services_asking_for_one_says_how_to_get_it() -> None:
    with moldau.run() as broker, pytest.raises(moldau.BrokerFailed, match=r"moldau\.run\(registry=True\)"):
        _ = broker.registry


def test_services_of_a_cluster_go_on_when_a_broker_is_killed() -> None:
    with (
        moldau.run(brokers=3, registry=True) as cluster,
        SchemaRegistryClient(cluster.registry.settings) as client,
    ):
        client.register_schema("before", TEXT)
        cluster.kill(max(cluster.brokers))
        client.register_schema("after", TEXT)
        assert client.get_subjects() == ["after", "before"]


def test_services_end_with_whoever_started_them() -> None:
    code = """
import moldau, sys, time
broker = moldau.run(registry=True)
print(broker.registry.pid, broker.pid, broker.data_dir.parent, flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        *pids, scratch = owner.stdout.readline().split()
        owner.send_signal(signal.SIGKILL)
    for each in pids:
        until(lambda each=each: not is_alive(int(each)), f"process {each} lives on")  # type: ignore[misc]
    until(lambda: not Path(scratch).exists(), f"{scratch} is still there")


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "zombie" not in Path(f"/proc/{pid}/status").read_text()
