"""What produce and consume do where a disk is full, a batch is damaged, or nobody answers any more."""

from __future__ import annotations

import errno
import struct
from argparse import Namespace
from collections.abc import Callable
from typing import cast

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from moldau.cli.failures import CommandFailed
from moldau.cli.librdkafka import Outage
from moldau.cli.records.delivery import Delivery
from moldau.cli.records.group_reading import Membership, read_as_member
from moldau.cli.records.produce import sending
from moldau.cli.records.selection import Selection
from moldau.client.cluster import Cluster
from moldau.client.fetched import FetchedRecord
from moldau.core.ids import TopicPartition
from moldau.wire.crc import crc32c
from moldau.wire.messages import ProduceRequest, ProduceResponse
from moldau.wire.messages.produce import PartitionProduceData, TopicProduceData
from tests.cli.conftest import Tool

Done = Callable[..., str]
WAIT_S_MAX = 30.0


class FullDisk:
    is_full = False

    def take(self, record: FetchedRecord) -> None:
        self.is_full = True

    def flush(self) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")


def test_what_a_full_disk_refused_is_read_by_whoever_reads_next(bootstrap: str, done: Done, topic: str) -> None:
    done("produce", topic, "-p", "0", stdin="0\n1\n2\n")
    group = f"group-{topic}"
    outage = Outage("consume", Namespace(bootstrap_server=bootstrap, timeout=WAIT_S_MAX))
    config = {
        "bootstrap.servers": bootstrap, "group.id": group, "enable.auto.offset.store": False,
        "auto.offset.reset": "earliest",
    }  # fmt: skip
    with (
        Cluster(bootstrap, client_id="test", timeout_s=WAIT_S_MAX) as cluster,
        pytest.raises(OSError, match="No space"),
    ):
        read_as_member(cluster, config, Membership(Selection((topic,))), FullDisk(), outage)
    assert done("consume", topic, "-g", group, "--from-beginning", "-e").split() == ["0", "1", "2"]


def garbled(base_offset: int) -> bytes:
    """A batch of three records, compressed as its producer says: brokers need not look into it."""
    payload = b"this is no gzip"
    body = struct.pack(">hiqqqhii", 1, 2, 1_000, 1_000, -1, -1, -1, 3) + payload
    tail = struct.pack(">ibI", 0, 2, crc32c(body)) + body
    return struct.pack(">qi", base_offset, len(tail)) + tail


def test_a_batch_that_nobody_can_read_ends_it_behind_what_is_whole(
    bootstrap: str, done: Done, tool: Tool, moldau_topic: str
) -> None:
    """It was asked for again and again, without a word."""
    done("topics", "create", moldau_topic)
    done("produce", moldau_topic, stdin="one\ntwo\n")
    data = [TopicProduceData(name=moldau_topic, partition_data=[PartitionProduceData(index=0, records=garbled(0))])]
    with Cluster(bootstrap, client_id="test", timeout_s=WAIT_S_MAX) as cluster:
        (broker,) = cluster.led([TopicPartition(moldau_topic, 0)])[0]
        request = ProduceRequest(acks=1, timeout_ms=1_000, topic_data=data)
        answer = cluster.ask_broker(broker, request, ProduceResponse, version_max=9)
        assert answer.responses[0].partition_responses[0].error_code == 0
    done("produce", moldau_topic, stdin="behind it\n")
    ended = tool("consume", moldau_topic, "--from-beginning", "-e")
    assert (ended.returncode, ended.stdout.split()) == (1, ["one", "two"])
    assert ended.stderr.startswith(
        f"moldau consume: {moldau_topic}-0: what is at offset 2 is damaged: Failed to decompr"
    )
    assert done("consume", moldau_topic, "--offset", "5:end") == "behind it\n"


class Undecided:
    """A producer whose commit fails as it is told to."""

    def __init__(self, wrong: KafkaError) -> None:
        self.wrong = wrong
        self.is_aborted = False

    def __len__(self) -> int:
        return 0

    def init_transactions(self, _: float) -> None: ...

    def begin_transaction(self) -> None: ...

    def flush(self, _: float) -> None: ...

    def commit_transaction(self, _: float) -> None:
        raise KafkaException(self.wrong)

    def abort_transaction(self, _: float) -> None:
        self.is_aborted = True


@pytest.mark.parametrize(
    ("wrong", "is_aborted", "told"),
    [
        (KafkaError(KafkaError._TIMED_OUT, retriable=True), False, "; nobody answered whether it was"),
        (KafkaError(KafkaError.INVALID_TXN_STATE, txn_requires_abort=True), True, ""),
    ],
)
def test_a_commit_that_nobody_answered_is_not_called_aborted(wrong: KafkaError, is_aborted: bool, told: str) -> None:
    producer = Undecided(wrong)
    options = Namespace(transaction=True, timeout=1.0)
    delivery = Delivery("t", cast("Outage", None), prints=False)
    with pytest.raises(CommandFailed) as failed, sending(cast("Producer", producer), options, delivery):
        pass
    assert str(failed.value).startswith("the transaction could not be committed: ")
    assert str(failed.value).endswith(told)
    assert producer.is_aborted is is_aborted
