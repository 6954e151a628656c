"""Groups through kills, and `__consumer_offsets` between Apache Kafka and us."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource

import moldau
from moldau.coordinator.placement import partition_for
from moldau.core.topic_names import GROUP_METADATA_TOPIC
from tests import apache_kafka
from tests.apache_kafka import ApacheKafka, free_ports
from tests.faults.clients import PATIENT, create_topic

TOPIC, GROUP = "numbers", "readers"
WAIT_S_MAX = 60.0
DUMP = "org.apache.kafka.tools.DumpLogSegments"

needs_apache_kafka = pytest.mark.skipif(
    not apache_kafka.available(), reason="Apache Kafka needs java, and Maven the first time"
)


def consumer(bootstrap: str, group: str = GROUP, *, settings: Mapping[str, Any] | None = None) -> Consumer:
    patience = {key: value for key, value in PATIENT.items() if key != "message.timeout.ms"}
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        | patience
        | dict(settings or {})
    )


def produce(bootstrap: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(count):
        producer.produce(TOPIC, b"%d" % number)
    assert producer.flush(WAIT_S_MAX) == 0


def committed(bootstrap: str, group: str = GROUP) -> int:
    reader = consumer(bootstrap, group)
    try:
        (found,) = reader.committed([TopicPartition(TOPIC, 0)], timeout=WAIT_S_MAX)
        return int(found.offset)
    finally:
        reader.close()


@pytest.mark.timeout(180)
def test_a_group_goes_on_through_kills_and_loses_no_commit(tmp_path: Path) -> None:
    """Every record is committed on its own; the broker dies now and then, and never forgets what it confirmed."""
    kills, between = 5, 40
    (port,) = free_ports(1)
    broker = moldau.run(data_dir=tmp_path, port=port)
    bootstrap = broker.bootstrap_servers
    create_topic(bootstrap, TOPIC)
    produce(bootstrap, (kills + 1) * between)
    reader = consumer(bootstrap, settings={"session.timeout.ms": 10_000, "heartbeat.interval.ms": 200})
    reader.subscribe([TOPIC])
    seen: list[int] = []
    confirmed = 0
    try:
        deadline_s = time.monotonic() + 120
        for turn in range(kills + 1):
            while confirmed < (turn + 1) * between:
                assert time.monotonic() < deadline_s, f"{confirmed} confirmed"
                message = reader.poll(0.2)
                if message is None or message.error() is not None:
                    continue
                seen.append(int(message.value() or b""))
                confirmed = confirm(reader, message.offset() + 1) or confirmed
            broker.kill()
            broker = moldau.run(data_dir=tmp_path, port=port)
            assert committed(bootstrap) == confirmed
        assert sorted(set(seen)) == list(range((kills + 1) * between))
    finally:
        reader.close()
        broker.kill()


def confirm(reader: Consumer, offset: int) -> int | None:
    """None if the broker was not there, or the group rebalanced: then it is committed with a later one."""
    try:
        reader.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)
    except KafkaException:
        return None
    return offset


@needs_apache_kafka
def test_apache_kafka_decodes_our_groups(tmp_path: Path) -> None:
    with moldau.run(data_dir=tmp_path) as broker:
        create_topic(broker.bootstrap_servers, TOPIC)
        produce(broker.bootstrap_servers, 3)
        reader = consumer(broker.bootstrap_servers)
        reader.subscribe([TOPIC])
        while reader.poll(0.2) is None:
            pass
        reader.commit(asynchronous=False)
        reader.close()
    log = tmp_path / f"{GROUP_METADATA_TOPIC}-{partition_for(GROUP, 50)}" / "00000000000000000000.log"
    done = apache_kafka.tool(DUMP, "--files", str(log), "--offsets-decoder")
    assert done.returncode == 0, done.stdout + done.stderr
    keys = re.findall(r'key: {"type":"(\d)","data":({[^}]*})}', done.stdout)
    group, offset = f'{{"group":"{GROUP}"}}', f'{{"group":"{GROUP}","topic":"{TOPIC}","partition":0}}'
    assert keys == [("2", group), ("2", group), ("1", offset), ("2", group)]
    assert f'"topics":["{TOPIC}"]' in done.stdout
    assert f'"assignedPartitions":[{{"topic":"{TOPIC}","partitions":[0]}}]' in done.stdout


@needs_apache_kafka
def test_we_know_the_groups_that_apache_kafka_coordinated(tmp_path: Path) -> None:
    """Commits of a group, of a simple consumer, and of transactions: committed, aborted and open."""
    with ApacheKafka(directory=tmp_path / "apache") as apache:
        fill(apache.bootstrap)
        data = apache.data_directory
    ours = tmp_path / "ours"
    for folder in (*data.glob(f"{GROUP_METADATA_TOPIC}-*"), data / f"{TOPIC}-0"):
        shutil.copytree(folder, ours / folder.name)
    with moldau.run(data_dir=ours) as broker:
        found = {group: committed(broker.bootstrap_servers, group) for group in EXPECTED}
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        (described,) = admin.describe_configs(
            [ConfigResource(ConfigResource.Type.TOPIC, GROUP_METADATA_TOPIC)]
        ).values()
        assert described.result(WAIT_S_MAX)["cleanup.policy"].value == "compact", "or offsets would be deleted with age"
    assert found == EXPECTED


NOTHING = -1001  # librdkafka's word for no offset
EXPECTED = {GROUP: 3, "simple": 7, "transactional": 5, "aborted": NOTHING}


def fill(bootstrap: str) -> None:
    create_topic(bootstrap, TOPIC)
    produce(bootstrap, 10)
    reader = consumer(bootstrap)
    reader.subscribe([TOPIC])
    while reader.poll(0.2) is None:
        pass
    reader.commit(offsets=[TopicPartition(TOPIC, 0, 3)], asynchronous=False)
    reader.close()
    simple = consumer(bootstrap, "simple")
    simple.commit(offsets=[TopicPartition(TOPIC, 0, 7)], asynchronous=False)
    for group, offset, ends in (("transactional", 5, True), ("aborted", 9, False)):
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"of {group}"})
        producer.init_transactions(WAIT_S_MAX)
        producer.begin_transaction()
        metadata = consumer(bootstrap, group).consumer_group_metadata()
        producer.send_offsets_to_transaction([TopicPartition(TOPIC, 0, offset)], metadata, WAIT_S_MAX)
        if ends:
            producer.commit_transaction(WAIT_S_MAX)
        else:
            producer.abort_transaction(WAIT_S_MAX)
