"""Kafka Streams with `exactly_once_v2` over SASL_SSL, by SCRAM, with no more rights than such an application needs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

import moldau
from tests.clients.toolchains import streams_application
from tests.faults.words import COUNTS, LINES, Tally

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not (shutil.which("mvn") and shutil.which("javac")),
        reason="Kafka Streams needs a JDK, and Maven the first time",
    ),
]

USER, PASSWORD = "words-user", "a secret of words"
APPLICATION = "words"  # its group, and how its topics and transactional ids begin
RIGHTS = [
    (ResourceType.TOPIC, ResourcePatternType.LITERAL, LINES, AclOperation.READ),
    (ResourceType.TOPIC, ResourcePatternType.LITERAL, COUNTS, AclOperation.WRITE),
    (ResourceType.TOPIC, ResourcePatternType.PREFIXED, f"{APPLICATION}-", AclOperation.ALL),
    (ResourceType.GROUP, ResourcePatternType.LITERAL, APPLICATION, AclOperation.READ),
    (ResourceType.TRANSACTIONAL_ID, ResourcePatternType.PREFIXED, f"{APPLICATION}-", AclOperation.WRITE),
]


def allow(admin: AdminClient) -> None:
    bindings = [
        AclBinding(kind, name, pattern, f"User:{USER}", "*", operation, AclPermissionType.ALLOW)
        for kind, pattern, name, operation in RIGHTS
    ]
    for done in admin.create_acls(bindings).values():
        done.result(20)


def refusal_of_writing(client: dict[str, object], topic: str) -> int:
    failed: list[KafkaError] = []
    producer = Producer(client)
    producer.produce(topic, b"never", on_delivery=lambda error, _: failed.append(error))
    assert producer.flush(30) == 0
    return int(failed[0].code())


def test_words_are_counted_once_by_a_user_with_just_the_rights(tmp_path: Path) -> None:
    with moldau.run(secure=True) as broker:
        for topic in (LINES, COUNTS):
            broker.create_topic(topic, partitions=1)
        user = broker.add_user(USER, PASSWORD)
        allow(AdminClient(broker.clients.confluent))
        settings = tmp_path / "client.properties"
        settings.write_text("".join(f"{key}={value}\n" for key, value in user.java.items()))
        tally = Tally(broker.bootstrap_servers, security=broker.clients.confluent)
        with (tmp_path / "application.txt").open("wb") as printed:
            words = [broker.bootstrap_servers, str(tmp_path / "state"), "1", str(settings)]
            application = subprocess.Popen([*streams_application(), *words], stdout=printed, stderr=subprocess.STDOUT)
        try:
            for _ in range(2):
                tally.say(500)
                tally.until_told()
            assert tally.out_of_step == []
            assert application.poll() is None
        finally:
            tally.close()
            application.kill()
            application.wait()
        assert refusal_of_writing(user.confluent, LINES) == KafkaError.TOPIC_AUTHORIZATION_FAILED
