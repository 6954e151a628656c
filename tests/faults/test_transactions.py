"""Transactions through kills: an outcome that a client heard of stands, and what is open ends."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

import moldau
from moldau.coordinator.placement import partition_for
from moldau.core import ids
from moldau.core.topic_names import TRANSACTION_STATE_TOPIC
from moldau.transactions.records import TransactionChanged, decode_fact, encode_fact
from moldau.transactions.states import State
from moldau.transactions.transaction import SECOND_PROTOCOL, Transaction
from moldau.wire.batch import Record, batches, build_batch, records, stamp
from tests import apache_kafka
from tests.faults.clients import PATIENT, create_topic

TOPIC, NAME = "orders", "payments"
WAIT_S_MAX = 60.0
DUMP = "org.apache.kafka.tools.DumpLogSegments"


def initialised(bootstrap: str, **settings: object) -> Producer:
    patience = {key: value for key, value in PATIENT.items() if key != "message.timeout.ms"}
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": NAME, **patience, **settings})
    producer.init_transactions(WAIT_S_MAX)
    return producer


def write(producer: Producer, *values: bytes) -> None:
    producer.begin_transaction()
    for value in values:
        producer.produce(TOPIC, value, partition=0)
    assert producer.flush(WAIT_S_MAX) == 0


def values(bootstrap: str) -> list[bytes]:
    """What is committed, up to the first transaction that is undecided."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "check.crcs": True,
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found: list[bytes] = []
    deadline_s = time.monotonic() + WAIT_S_MAX
    try:
        while time.monotonic() < deadline_s:
            message = consumer.poll(0.1)
            error = None if message is None else message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                return found
            if message is not None and error is None:
                found.append(message.value())
        raise AssertionError(f"no end after {found}")
    finally:
        consumer.close()


def until_read(bootstrap: str, expected: list[bytes]) -> None:
    deadline_s = time.monotonic() + WAIT_S_MAX
    while (found := values(bootstrap)) != expected:
        assert time.monotonic() < deadline_s, found


def journal(data: Path) -> Path:
    return data / f"{TRANSACTION_STATE_TOPIC}-{partition_for(NAME, 50)}" / "00000000000000000000.log"


def last_transaction(path: Path) -> tuple[Transaction, int]:
    """The newest state of the transactional id, and the offset after it."""
    view = memoryview(path.read_bytes())
    found, end_offset = None, 0
    for at, header in batches(view):
        end_offset = header.next_offset
        for record in records(view[at : at + header.length_bytes], decompressed_bytes_max=1 << 20):
            assert record.key is not None
            assert record.value is not None
            found = decode_fact(memoryview(record.key), memoryview(record.value))
    assert isinstance(found, TransactionChanged)
    return found.transaction, end_offset


def test_an_open_transaction_goes_on_after_a_kill(tmp_path: Path) -> None:
    with moldau.run(data_dir=tmp_path) as broker:
        create_topic(broker.bootstrap_servers, TOPIC)
        producer = initialised(broker.bootstrap_servers)
        write(producer, b"a")
        port = broker.port
        broker.kill()
    with moldau.run(data_dir=tmp_path, port=port) as broker:
        assert values(broker.bootstrap_servers) == []
        producer.produce(TOPIC, b"b", partition=0)
        producer.commit_transaction(WAIT_S_MAX)
        until_read(broker.bootstrap_servers, [b"a", b"b"])


def test_an_open_transaction_whose_producer_is_gone_times_out_after_a_kill(tmp_path: Path) -> None:
    with moldau.run(data_dir=tmp_path) as broker:
        create_topic(broker.bootstrap_servers, TOPIC)
        write(initialised(broker.bootstrap_servers, **{"transaction.timeout.ms": 3_000}), b"lost")
        broker.kill()
    with moldau.run(data_dir=tmp_path) as broker:
        plain = Producer({"bootstrap.servers": broker.bootstrap_servers})
        plain.produce(TOPIC, b"kept", partition=0)
        assert plain.flush(WAIT_S_MAX) == 0
        until_read(broker.bootstrap_servers, [b"kept"])


@pytest.mark.parametrize("outcome", [State.PREPARE_COMMIT, State.PREPARE_ABORT])
def test_markers_that_a_kill_came_before_are_written_after_it(tmp_path: Path, outcome: State) -> None:
    """The journal ends with the outcome, as it does when the broker dies between the answer and the markers."""
    with moldau.run(data_dir=tmp_path) as broker:
        create_topic(broker.bootstrap_servers, TOPIC)
        write(initialised(broker.bootstrap_servers), b"a", b"b")
        broker.kill()
    before, end_offset = last_transaction(journal(tmp_path))
    assert (before.state, before.partitions) == (State.ONGOING, frozenset({ids.TopicPartition(TOPIC, 0)}))
    decided = Transaction(
        NAME,
        before.producer_id,
        before.epoch + 1,
        previous_producer_id=before.producer_id,
        timeout_ms=before.timeout_ms,
        state=outcome,
        partitions=before.partitions,
        started_ms=before.started_ms,
        updated_ms=before.updated_ms,
        client_version=SECOND_PROTOCOL,
    )
    key, value = encode_fact(TransactionChanged(decided), SECOND_PROTOCOL)
    batch = build_batch([Record(0, before.updated_ms, key, value)])
    stamp(memoryview(batch), 0, end_offset, 0)
    with journal(tmp_path).open("ab") as log:
        log.write(batch)
    with moldau.run(data_dir=tmp_path) as broker:
        until_read(broker.bootstrap_servers, [b"a", b"b"] if outcome is State.PREPARE_COMMIT else [])
        producer = initialised(broker.bootstrap_servers)
        write(producer, b"c")
        producer.commit_transaction(WAIT_S_MAX)
        until_read(broker.bootstrap_servers, [b"a", b"b", b"c"] if outcome is State.PREPARE_COMMIT else [b"c"])


def test_commits_that_were_confirmed_survive_kills_at_any_moment(tmp_path: Path) -> None:
    confirmed: list[bytes] = []
    port = 0
    for round_number in range(4):
        with moldau.run(data_dir=tmp_path, port=port) as broker:
            port = broker.port
            if round_number == 0:
                create_topic(broker.bootstrap_servers, TOPIC)
            producer = initialised(broker.bootstrap_servers)
            for number in range(6):
                value = b"%d-%d" % (round_number, number)
                write(producer, value, value)
                if number % 3 == 2:
                    producer.abort_transaction(WAIT_S_MAX)
                else:
                    producer.commit_transaction(WAIT_S_MAX)
                    confirmed += [value, value]
            write(producer, b"open")
            broker.kill()
    with moldau.run(data_dir=tmp_path) as broker:
        initialised(broker.bootstrap_servers)  # ends what the last one left open
        until_read(broker.bootstrap_servers, confirmed)


@pytest.mark.skipif(not apache_kafka.available(), reason="Apache Kafka needs java, and Maven the first time")
def test_apache_kafka_reads_our_transactions(tmp_path: Path) -> None:
    with moldau.run(data_dir=tmp_path) as broker:
        create_topic(broker.bootstrap_servers, TOPIC)
        producer = initialised(broker.bootstrap_servers)
        write(producer, b"a")
        producer.commit_transaction(WAIT_S_MAX)
        write(producer, b"b")
        producer.abort_transaction(WAIT_S_MAX)
    decoded = apache_kafka.tool(DUMP, "--transaction-log-decoder", "--files", str(journal(tmp_path)))
    assert f'"transactionalId":"{NAME}"' in decoded.stdout, decoded.stderr
    assert '"transactionStatus":5' in decoded.stdout
    data = apache_kafka.tool(DUMP, "--print-data-log", "--files", str(tmp_path / f"{TOPIC}-0" / journal(tmp_path).name))
    assert "endTxnMarker: COMMIT" in data.stdout, data.stderr
    assert "endTxnMarker: ABORT" in data.stdout
    index = journal(tmp_path).name.replace(".log", ".txnindex")
    aborted = apache_kafka.tool(DUMP, "--files", str(tmp_path / f"{TOPIC}-0" / index))
    assert "producerId" in aborted.stdout, aborted.stderr
