"""Typed columns in a real Spark: read, written, inferred, and what doesn't fit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moldau.core.ids import TopicPartition
from moldau.spark.dead_letters.letters import SKIPPED_GROUP, count_letters
from moldau.spark.dead_letters.sending_back import send_back
from tests.spark.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ALL_TYPES = (
    "i INT, l BIGINT, f FLOAT, d DOUBLE, b BOOLEAN, s STRING, bytes BINARY, day DATE, at TIMESTAMP, "
    "local TIMESTAMP_NTZ, price DECIMAL(10,2), many ARRAY<STRING>, "
    "by_name MAP<STRING,BIGINT>, one STRUCT<x: INT, y: ARRAY<DOUBLE>>"
)
ROW: dict[str, Any] = {
    "i": 1, "l": 1 << 40, "f": 1.5, "d": float("inf"), "b": True, "s": 'é"\n😀', "bytes": bytearray(b"\0\xff"),
    "day": date(2024, 2, 29), "at": datetime(2024, 1, 1, 12, 0, 0, 5), "local": datetime(2024, 1, 1, 12),
    "price": Decimal("12.50"), "many": ["a", None], "by_name": {"k": 7}, "one": {"x": None, "y": [0.1]},
}  # fmt: skip
ORDERS = "id BIGINT NOT NULL, price DOUBLE"


@pytest.fixture
def read(spark: SparkSession, bootstrap: str) -> Callable[..., DataFrame]:
    def load(topic: str, **options: str) -> DataFrame:
        reader = spark.read.format("moldau").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
        return reader.options(**options).load()

    return load


def write(frame: DataFrame, bootstrap: str, topic: str, **options: str) -> None:
    writer = frame.write.format("moldau").mode("append").option("kafka.bootstrap.servers", bootstrap)
    writer.option("topic", topic).options(**options).save()


@pytest.mark.parametrize("name", ["json", "avro"])
def test_every_type_goes_out_and_comes_in_again(
    name: str, spark: SparkSession, topics: Topics, bootstrap: str, read: Callable[..., DataFrame]
) -> None:
    topic = topics.create("typed")
    frame = spark.createDataFrame([ROW, dict.fromkeys(ROW)], ALL_TYPES)
    write(frame.selectExpr("struct(*) AS value"), bootstrap, topic, valueFormat=name)
    options = {"valueSchema": ALL_TYPES}
    if name == "avro":
        from moldau.spark.formats.avro.schema import avro_document_of
        from moldau.spark.formats.schema_text import parse_schema_text

        document = avro_document_of(parse_schema_text(ALL_TYPES, place=""), place="")
        options = {"valueAvroSchema": json.dumps(document)}
    found = read(topic, valueFormat=name, **options).select("value.*").orderBy("i", ascending=False)
    assert found.schema.simpleString() == frame.schema.simpleString()
    rows = [row.asDict(recursive=True) for row in found.collect()]
    assert rows == [ROW, dict.fromkeys(ROW)]


def test_json_is_inferred_from_the_topic(topics: Topics, read: Callable[..., DataFrame]) -> None:
    topic = topics.create("inferred")
    topics.produce(topic, [b'{"id":1,"price":2}', b'{"id":2,"price":2.5,"tags":["a"]}', None])
    frame = read(topic, valueFormat="json")
    assert frame.select("value").schema.simpleString() == (
        "struct<value:struct<id:bigint,price:double,tags:array<string>>>"
    )
    assert [tuple(row) for row in frame.selectExpr("value.id", "value.price").collect()] == [
        (1, 2.0),
        (2, 2.5),
        (None, None),
    ]


def test_text_keys(topics: Topics, read: Callable[..., DataFrame]) -> None:
    topic = topics.create("text")
    topics.produce(topic, [b"v"], key="é".encode())
    assert [tuple(row) for row in read(topic, keyFormat="string").select("key", "value").collect()] == [("é", b"v")]


def test_a_record_that_does_not_fit_fails_the_read_with_its_place(
    topics: Topics, read: Callable[..., DataFrame]
) -> None:
    topic = topics.create("failing")
    topics.produce(topic, [b'{"id":1}', b'{"id":1,"price":"abc"}'])
    frame = read(topic, valueFormat="json", valueSchema=ORDERS)
    with pytest.raises(Exception, match=f"offset 1 of {topic}-0 does not fit: value: field price: expected double"):
        frame.collect()
    skipping = read(topic, valueFormat="json", valueSchema=ORDERS, onError="skip")
    assert [row.id for row in skipping.selectExpr("value.id").collect()] == [1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"valueFormat": "xml"}, "option valueFormat = 'xml': allowed is one of binary, string, json, avro"),
        ({"valueFormat": "json", "valueSchema": "id BIGNT"}, "option valueSchema: type 'BIGNT' is not one of"),
        ({"valueFormat": "avro"}, "option valueAvroSchema is missing"),
        (
            {"valueFormat": "string", "onError": "drop"},
            "option onError = 'drop': allowed is one of fail, skip, deadletter",
        ),
    ],
)
def test_wrong_options_are_found_before_anything_runs(
    options: dict[str, str], said: str, topics: Topics, read: Callable[..., DataFrame]
) -> None:
    topic = topics.create("wrong")
    with pytest.raises(Exception, match=said):
        read(topic, **options).collect()


class Stream:
    """A query that copies the ids of a topic's orders to a folder, with AvailableNow."""

    def __init__(self, spark: SparkSession, topics: Topics, checkpoint: Path, *, on_error: str) -> None:
        self.spark, self.topics, self.checkpoint = spark, topics, checkpoint
        self.on_error = on_error
        self.topic = topics.create("orders", partitions=2)
        self.query = topics.name("copy")
        self.folder = checkpoint.parent / "ids"

    @property
    def group(self) -> str:
        return f"test-{self.query}"

    def produce(self, values: list[bytes], partition: int) -> None:
        self.topics.produce(self.topic, values, partition=partition, headers=[("trace", b"1")])

    def run(self, **options: str) -> list[int]:
        frame = (
            self.spark.readStream.format("moldau")
            .option("kafka.bootstrap.servers", self.topics.bootstrap)
            .options(subscribe=self.topic, startingOffsets="earliest", valueFormat="json", valueSchema=ORDERS)
            .options(onError=self.on_error, groupIdPrefix="test", **options)
            .load()
            .selectExpr("value.id")
        )
        query = (
            frame.writeStream.format("parquet")
            .queryName(self.query)
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(availableNow=True)
            .start(str(self.folder))
        )
        assert query.awaitTermination(120)
        return sorted(row.id for row in self.spark.read.parquet(str(self.folder)).collect())

    def forget_last_batch(self) -> None:
        """As after a crash between the work and the note that it is done."""
        commits = sorted((self.checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
        commits[-1].unlink()
        for checksum in (self.checkpoint / "commits").glob(".*.crc"):
            checksum.unlink()
        shutil.rmtree(self.folder)


def test_dead_letters_of_a_stream_are_written_once_and_can_be_sent_back(
    spark: SparkSession, topics: Topics, checkpoint: Path
) -> None:
    stream = Stream(spark, topics, checkpoint, on_error="deadletter")
    stream.produce([b'{"id":1}', b'{"id":"x"}', b"{"], partition=0)
    stream.produce([b'{"price":1}', b'{"id":2}'], partition=1)
    assert stream.run() == [1, 2]
    stream.forget_last_batch()
    assert stream.run() == [1, 2]
    letters = topics.rows(f"{stream.topic}.dead-letters")
    assert sorted(row.value or b"" for row in letters) == [b"{", b'{"id":"x"}', b'{"price":1}']
    told = {row.value: dict(row.headers) for row in letters}[b'{"id":"x"}']
    assert told["trace"] == b"1"
    assert told["moldau.dead-letter.offset"] == b"1"
    assert told["moldau.dead-letter.query"] == stream.query.encode()
    assert told["moldau.dead-letter.reason"] == b"value: field id: expected bigint, got 'x'"
    client = (("bootstrap.servers", topics.bootstrap),)
    places = [TopicPartition(stream.topic, 0), TopicPartition(stream.topic, 1)]
    assert count_letters(client, stream.group, places) == {places[0]: 2, places[1]: 1}
    assert send_back(client, f"{stream.topic}.dead-letters").by_topic == {stream.topic: 3}
    assert len(topics.rows(stream.topic)) == 8


def test_what_a_stream_skips_is_counted_once(spark: SparkSession, topics: Topics, checkpoint: Path) -> None:
    stream = Stream(spark, topics, checkpoint, on_error="skip")
    stream.produce([b'{"id":1}', b'{"id":"x"}', b"{"], partition=0)
    assert stream.run() == [1]
    stream.forget_last_batch()
    assert stream.run(minPartitions="4") == [1]
    client = (("bootstrap.servers", topics.bootstrap),)
    place = TopicPartition(stream.topic, 0)
    assert count_letters(client, stream.group, [place], kind=SKIPPED_GROUP)[place] == 2


def test_times_are_instants(topics: Topics, read: Callable[..., DataFrame]) -> None:
    topic = topics.create("times")
    topics.produce(topic, [b'{"at":"2024-01-01T02:00:00+02:00"}'])
    frame = read(topic, valueFormat="json", valueSchema="at TIMESTAMP")
    (row,) = frame.selectExpr("unix_micros(value.at) AS micros").collect()
    assert row.micros == int(datetime(2024, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
