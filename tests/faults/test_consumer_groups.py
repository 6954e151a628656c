"""Consumer groups of the new protocol through kills, and their records between Apache Kafka and us."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupType, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

import moldau
from moldau.coordinator.placement import partition_for
from moldau.core.topic_names import GROUP_METADATA_TOPIC
from tests import apache_kafka
from tests.apache_kafka import ApacheKafka, free_ports
from tests.faults.clients import create_topic
from tests.faults.test_groups import DUMP, GROUP, TOPIC, WAIT_S_MAX, committed, consumer, needs_apache_kafka, produce

NEW = {"group.protocol": "consumer"}
KILLS, BETWEEN = 2, 20
# The kinds of record that a group writes: its epoch, a member, the target's epoch, a target and what a member has.
KINDS = {"3", "5", "6", "7", "8"}


@pytest.mark.timeout(120)
def test_a_member_goes_on_through_kills_and_loses_no_commit(tmp_path: Path) -> None:
    """The coordinator knows the member again, so that it keeps its partition through every restart."""
    (port,) = free_ports(1)
    broker = moldau.run(data_dir=tmp_path, port=port)
    bootstrap = broker.bootstrap_servers
    create_topic(bootstrap, TOPIC)
    produce(bootstrap, (KILLS + 1) * BETWEEN)
    rebalances: list[Any] = []
    reader = consumer(bootstrap, settings=NEW)
    reader.subscribe(
        [TOPIC], on_assign=lambda _, given: rebalances.append(given), on_lost=lambda _, gone: rebalances.append(gone)
    )
    seen: list[int] = []
    confirmed = 0
    try:
        deadline_s = time.monotonic() + 90
        for turn in range(KILLS + 1):
            while confirmed < (turn + 1) * BETWEEN:
                assert time.monotonic() < deadline_s, f"{confirmed} confirmed"
                message = reader.poll(0.2)
                if message is not None and message.error() is None:
                    seen.append(int(message.value() or b""))
                    confirmed = confirm(reader, message.offset() + 1) or confirmed
            broker.kill()
            broker = moldau.run(data_dir=tmp_path, port=port)
            assert committed(bootstrap) == confirmed
        assert sorted(set(seen)) == list(range((KILLS + 1) * BETWEEN))
        assert len(rebalances) == 1
    finally:
        reader.close()
        broker.kill()


def confirm(reader: Consumer, offset: int) -> int | None:
    """None if the broker was not there: then it is committed with a later one."""
    try:
        reader.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)
    except KafkaException:
        return None
    return offset


def read_some(bootstrap: str, *, while_open: Callable[[], None] = lambda: None) -> None:
    """A group with one member that commits offset 3 and leaves."""
    create_topic(bootstrap, TOPIC)
    produce(bootstrap, 10)
    reader = consumer(bootstrap, settings=NEW)
    reader.subscribe([TOPIC])
    deadline_s = time.monotonic() + WAIT_S_MAX
    while reader.poll(0.2) is None:
        assert time.monotonic() < deadline_s, "nothing to read"
    reader.commit(offsets=[TopicPartition(TOPIC, 0, 3)], asynchronous=False)
    while_open()
    reader.close()


def group_log(folder: Path) -> Path:
    return folder / f"{GROUP_METADATA_TOPIC}-{partition_for(GROUP, 50)}" / "00000000000000000000.log"


@needs_apache_kafka
def test_apache_kafka_decodes_our_consumer_groups(tmp_path: Path) -> None:
    with moldau.run(data_dir=tmp_path) as broker:
        read_some(broker.bootstrap_servers)
    done = apache_kafka.tool(DUMP, "--files", str(group_log(tmp_path)), "--offsets-decoder")
    assert done.returncode == 0, done.stdout + done.stderr
    written = re.findall(r'key: {"type":"(\d+)","data":({[^}]*})} payload: ?(.*)', done.stdout)
    assert {kind for kind, key, _ in written if f'"groupId":"{GROUP}"' in key} == KINDS
    (profile, *_) = [payload for kind, _, payload in written if kind == "5"]
    assert f'"subscribedTopicNames":["{TOPIC}"]' in profile
    assert '"classicMemberMetadata":null' in profile, "left out it would be an empty one, of a classic member"
    progress = [payload for kind, _, payload in written if kind == "8"]
    assert '"partitions":[0],"assignmentEpochs":[2]' in progress[0]
    assert progress[-1] == "<DELETE>"


def groups_once_loaded(admin: AdminClient) -> dict[str, Any]:
    """A coordinator that reads its log says so, which this client's `list_consumer_groups` does not try again."""
    deadline_s = time.monotonic() + WAIT_S_MAX
    while True:
        answer = admin.list_consumer_groups().result(WAIT_S_MAX)
        if not answer.errors:
            return {each.group_id: each for each in answer.valid}
        assert time.monotonic() < deadline_s, answer.errors


@needs_apache_kafka
def test_we_know_the_consumer_groups_that_apache_kafka_coordinated(tmp_path: Path) -> None:
    ours = tmp_path / "ours"

    def copy() -> None:
        for folder in (*data.glob(f"{GROUP_METADATA_TOPIC}-*"), data / f"{TOPIC}-0"):
            shutil.copytree(folder, ours / folder.name)

    with ApacheKafka(directory=tmp_path / "apache") as apache:
        data = apache.data_directory
        read_some(apache.bootstrap, while_open=copy)
    with moldau.run(data_dir=ours) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        listed = groups_once_loaded(admin)
        assert listed[GROUP].type is ConsumerGroupType.CONSUMER
        (described,) = admin.describe_consumer_groups([GROUP]).values()
        found = described.result(WAIT_S_MAX)
        assert found.state is ConsumerGroupState.STABLE
        assert len(found.members) == 1
        assert committed(broker.bootstrap_servers) == 3
