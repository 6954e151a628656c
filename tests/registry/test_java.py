"""Confluent's own Avro serializers for Java, in an application that shares its topic with one in Python."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.clients.toolchains import MissingToolchain, built, compile_java, java_command, run, sources
from tests.registry.running import WAIT_S_MAX, RunningRegistry

HERE = Path(__file__).parent / "java"
ORDER = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]})
# Version 7.9.5 of them, with a client of Apache Kafka in one jar: Confluent's own packages are not on Maven Central.
SERIALIZERS = "org.apache.pinot:pinot-confluent-avro:1.5.0:jar:shaded"
pytestmark = [pytest.mark.xdist_group("registry"), pytest.mark.long]


@pytest.fixture(scope="module")
def command() -> list[str]:
    def build(target: Path) -> None:
        libs = target / "libs"
        options = [f"-Dartifact={SERIALIZERS}", f"-DoutputDirectory={libs}"]
        run("mvn", "-q", "-B", "dependency:copy", *options, directory=target)
        compile_java(HERE / "Application.java", libs=libs, classes=target / "classes")

    try:
        target = built("java-registry", sources(HERE), build)
        return java_command(target / "libs", target / "classes", "Application")
    except MissingToolchain as missing:
        pytest.skip(str(missing))


def test_a_java_application(bootstrap: str, registry: RunningRegistry, subject: str, command: list[str]) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(subject, 1, 1)])[subject].result(WAIT_S_MAX)
    context = SerializationContext(subject, MessageField.VALUE, [])
    with SchemaRegistryClient({"url": registry.url}) as client:
        producer = Producer({"bootstrap.servers": bootstrap})
        producer.produce(subject, AvroSerializer(client, ORDER)({"id": 1}, context), partition=0)
        producer.flush()
        finished = subprocess.run(
            [*command, bootstrap, registry.url, subject], capture_output=True, text=True, timeout=120, check=False
        )
        assert finished.returncode == 0, finished.stderr
        values = [
            {"id": 1},
            {"id": 2},
            {"id": 3, "note": "two coffees"},
            {"id": 4, "note": "two coffees"},
        ]
        assert json.loads(finished.stdout) == {
            "refused": 40_901,
            "versions": [1, 2],
            "compatible": False,
            "read": values,
        }
        read = AvroDeserializer(client)
        assert [read(each, context) for each in payloads(bootstrap, subject, len(values))] == values


def payloads(bootstrap: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[Any] = []
    deadline_s = time.monotonic() + WAIT_S_MAX
    while len(found) < count and time.monotonic() < deadline_s:
        found += [each.value() for each in consumer.consume(count, timeout=1.0)]
    consumer.close()
    return found
