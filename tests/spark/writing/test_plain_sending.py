"""Our own producer against a real broker, which may go away in the middle of it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Collection, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import moldau
from moldau.core.ids import TopicPartition as Place
from moldau.spark.clients.librdkafka import NoAnswer
from moldau.spark.clients.plain_brokers import GROUP, addresses_of, brokers_of
from moldau.spark.options import SinkOptions, sink_options
from moldau.spark.writing.plain_delivery import can_send, done_plainly, opened_plainly, sending_rules, write_plainly
from moldau.spark.writing.plain_sending import Identity, PlainSender, SendingRules
from moldau.spark.writing.rows_to_records import Records, to_records
from moldau.spark.writing.task_progress import Fenced, NotedBatch, SinkTask
from moldau.wire.compression import Codec
from moldau.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from moldau.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

ROWS = 2_000
BATCHES = 40
READ_S_MAX = 20.0


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with moldau.run() as broker:
        yield broker.bootstrap_servers


def options_of(bootstrap: str, topic: str, **settings: str) -> SinkOptions:
    kafka = {f"kafka.{name.replace('_', '.')}": value for name, value in settings.items()}
    return sink_options({"kafka.bootstrap.servers": bootstrap, "topic": topic, **kafka}, streaming=True)


def created(bootstrap: str, topic: str, *, partitions: int = 3, **configs: str) -> str:
    settings = {name.replace("_", "."): value for name, value in configs.items()}
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])[topic].result()
    return topic


def rows_of(first: int, count: int = ROWS) -> pa.RecordBatch:
    numbers = [b"%d" % number for number in range(first, first + count)]
    return pa.RecordBatch.from_pydict({"key": pa.array(numbers), "value": pa.array(numbers)})


def read(bootstrap: str, topic: str, *, partitions: int = 3, isolation: str = "read_committed") -> list[list[int]]:
    """The values of each partition, in order."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "r", "isolation.level": isolation, "log_level": 0}
    consumer = Consumer({**settings, "enable.partition.eof": True, "auto.offset.reset": "earliest"})
    found: list[list[int]] = []
    for partition in range(partitions):
        consumer.assign([TopicPartition(topic, partition, 0)])
        values: list[int] = []
        while (message := consumer.poll(READ_S_MAX)) is not None and message.error() is None:
            values.append(int(message.value()))
        assert message is not None, "an end within the time"
        found.append(values)
    consumer.close()
    return found


def check_all_in_order(found: list[list[int]], count: int) -> None:
    assert sorted(value for values in found for value in values) == list(range(count))
    assert all(values == sorted(values) for values in found)
    assert all(found), "keys are spread over all partitions"


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_everything_arrives_once_and_in_order(bootstrap: str, codec: str) -> None:
    topic = created(bootstrap, f"plain-{codec}")
    options = options_of(bootstrap, topic, compression_type=codec, batch_size="20000")
    for start in range(0, 3 * ROWS, ROWS):
        written = write_plainly([rows_of(start)], options.client, to_records(options))
        assert written.records == ROWS
    check_all_in_order(read(bootstrap, topic), 3 * ROWS)


@pytest.mark.parametrize("is_transaction", [False, True])
def test_a_broker_that_is_killed_and_comes_back_loses_and_doubles_nothing(tmp_path: Path, is_transaction: bool) -> None:
    first = moldau.run(data_dir=tmp_path / "data")
    bootstrap = first.bootstrap_servers
    topic = created(bootstrap, "restart")
    options = options_of(bootstrap, topic, batch_size="5000")
    sink_task = SinkTask("query", batch=4, task=0)
    restarted: list[moldau.EmbeddedBroker] = []

    def restart() -> None:
        first.kill()
        restarted.append(moldau.run(data_dir=tmp_path / "data", port=int(bootstrap.rpartition(":")[2])))

    def rows() -> Iterator[pa.RecordBatch]:
        for number in range(BATCHES):
            if number == BATCHES // 2:
                restarting.start()
            yield rows_of(number * ROWS)

    restarting = threading.Thread(target=restart)
    try:
        if is_transaction:
            opened = opened_plainly(options.client, sink_task, topic, in_any_topic=False)
            assert not isinstance(opened, NotedBatch)
            opened.write(rows(), to_records(options), sink_task, topic)
        else:
            write_plainly(rows(), options.client, to_records(options))
        restarting.join()
        check_all_in_order(read(bootstrap, topic), BATCHES * ROWS)
    finally:
        restarting.join()
        for broker in (first, *restarted):
            broker.stop()


@pytest.mark.parametrize("lost", [1, 3])
def test_a_request_that_a_broker_never_read_is_sent_again_before_any_other(tmp_path: Path, lost: int) -> None:
    """As when a broker dies with records on their way, and the coordinator is asked about another partition then."""
    with moldau.run(data_dir=tmp_path / "data") as broker:
        topic = created(broker.bootstrap_servers, "unread", partitions=2)
        options = options_of(broker.bootstrap_servers, topic)
        brokers = brokers_of(options.client)
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1)
        made = brokers.anywhere().call(request, 1, InitProducerIdResponse)
        brokers.leader(Place(topic, 0))
        brokers.batch_bytes_max(topic)

        def ask_coordinator(places: Collection[Place]) -> None:
            if Place(topic, 0) in places:
                os.kill(broker.pid, signal.SIGSTOP)  # what is sent to it from here on, nobody reads
                return
            broker.kill()
            broker.restart()
            joined = OffsetFetchRequest(group_id="any", topics=None, require_stable=True)
            brokers.ask_coordinator(GROUP, "any", joined, 7, OffsetFetchResponse, codes=lambda told: [told.error_code])

        rules = SendingRules(batch_bytes_max=1)
        sender = PlainSender(
            brokers, Identity(made.producer_id, made.producer_epoch), rules, before_first=ask_coordinator
        )
        numbers = list(range(lost + 1))
        for number in numbers:
            sender.send(Records(topic, int(number == lost), None, pa.array([b"%d" % number]), None))
        sender.finish()
        assert read(broker.bootstrap_servers, topic, partitions=2) == [numbers[:lost], numbers[lost:]]


def test_a_transaction_is_seen_when_it_is_committed_and_knows_its_batch_again(bootstrap: str) -> None:
    topic = created(bootstrap, "once")
    options = options_of(bootstrap, topic)
    sink_task = SinkTask("once", batch=7, task=1)
    opened = opened_plainly(options.client, sink_task, topic, in_any_topic=False)
    assert not isinstance(opened, NotedBatch)
    seen_before: list[list[int]] = []

    def rows() -> Iterator[pa.RecordBatch]:
        yield rows_of(0)
        seen_before.extend(read(bootstrap, topic))

    written = opened.write(rows(), to_records(options), sink_task, topic)
    assert seen_before == [[], [], []]
    check_all_in_order(read(bootstrap, topic), ROWS)
    for in_any_topic in (False, True):
        found = opened_plainly(options.client, sink_task, topic, in_any_topic=in_any_topic)
        assert isinstance(found, NotedBatch)
        assert (found.batch, found.is_of(written)) == (7, True)


def test_rows_that_fail_are_taken_back(bootstrap: str) -> None:
    topic = created(bootstrap, "failing")
    options = options_of(bootstrap, topic, batch_size="1000")
    sink_task = SinkTask("failing", batch=0, task=0)
    opened = opened_plainly(options.client, sink_task, topic, in_any_topic=False)
    assert not isinstance(opened, NotedBatch)

    def rows() -> Iterator[pa.RecordBatch]:
        yield rows_of(0)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        opened.write(rows(), to_records(options), sink_task, topic)
    assert read(bootstrap, topic) == [[], [], []]
    assert done_plainly(options.client, sink_task, topic, in_any_topic=False) is None


def test_a_second_attempt_fences_the_first(bootstrap: str) -> None:
    topic = created(bootstrap, "attempts")
    options = options_of(bootstrap, topic, batch_size="1000")
    sink_task = SinkTask("attempts", batch=0, task=0)
    first = opened_plainly(options.client, sink_task, topic, in_any_topic=False)
    assert not isinstance(first, NotedBatch)

    def rows() -> Iterator[pa.RecordBatch]:
        yield rows_of(0)
        second = opened_plainly(options.client, sink_task, topic, in_any_topic=False)
        assert not isinstance(second, NotedBatch)
        second.write([rows_of(0)], to_records(options), sink_task, topic)
        yield rows_of(ROWS)

    with pytest.raises(Fenced):
        first.write(rows(), to_records(options), sink_task, topic)
    check_all_in_order(read(bootstrap, topic), ROWS)


def test_a_record_that_is_too_large_is_refused_in_words(bootstrap: str) -> None:
    topic = created(bootstrap, "small", max_message_bytes="1000")
    options = options_of(bootstrap, topic)
    large = pa.RecordBatch.from_pydict({"value": pa.array([b"x" * 5000])})
    with pytest.raises(NoAnswer, match="could not be written"):
        write_plainly([large], options.client, to_records(options))
    # The next write is not disturbed by what the failed one has left.
    write_plainly([rows_of(0, 10)], options.client, to_records(options))
    check_all_in_order(read(bootstrap, topic), 10)


def test_a_topic_that_takes_small_batches_gets_small_batches(bootstrap: str) -> None:
    topic = created(bootstrap, "smaller", max_message_bytes="2000")
    options = options_of(bootstrap, topic)
    write_plainly([rows_of(0)], options.client, to_records(options))
    check_all_in_order(read(bootstrap, topic), ROWS)


def test_a_partition_that_is_not_there_is_named(bootstrap: str) -> None:
    topic = created(bootstrap, "few")
    options = options_of(bootstrap, topic)
    rows = pa.RecordBatch.from_pydict({"value": pa.array([b"x"]), "partition": pa.array([9], pa.int32())})
    with pytest.raises(NoAnswer, match=r"few-9.*3 partitions"):
        write_plainly([rows], options.client, to_records(options))


@pytest.mark.parametrize(
    ("settings", "allowed"),
    [
        ({}, True),
        ({"compression.type": "zstd", "batch.size": "9", "acks": "all"}, True),
        ({"acks": "1"}, False),
        ({"enable.idempotence": "false"}, False),
        ({"security.protocol": "SSL"}, True),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, False),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}, False),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI", "sasl.kerberos.kinit.cmd": "x"}, False),
        ({"partitioner": "consistent"}, False),
        ({"compression.type": "brotli"}, False),
    ],
)
def test_what_it_does_not_know_is_left_to_librdkafka(settings: dict[str, str], allowed: bool) -> None:
    assert can_send((("bootstrap.servers", "a:1"), *settings.items())) is allowed


def test_settings_and_addresses_are_read_as_librdkafka_reads_them() -> None:
    rules = sending_rules((("compression.type", "lz4"), ("delivery.timeout.ms", "5000"), ("batch.size", "77")))
    assert (rules.codec, rules.delivery_s_max, rules.batch_bytes_max) == (Codec.LZ4, 5.0, 77)
    assert addresses_of("a:1, PLAINTEXT://b:2,c,[::1]:9") == [("a", 1), ("b", 2), ("c", 9092), ("::1", 9)]
