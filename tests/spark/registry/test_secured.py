"""A registry with TLS of an authority of its own and HTTP Basic, beside a broker with both: from files to results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import SchemaRegistryClient

import moldau
from moldau.embedded.broker import EmbeddedBroker
from tests.spark.registry.serializing import avro_bytes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def read_all(broker: EmbeddedBroker, topic: str, count: int) -> list[bytes]:
    consumer = Consumer({**broker.clients.confluent, "group.id": "reader", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[bytes] = []
    try:
        for _ in range(60):
            message = consumer.poll(1.0)
            if message is not None and message.error() is None:
                found.append(message.value() or b"")
            if len(found) == count:
                break
    finally:
        consumer.close()
    return found


def command_lines() -> str:
    """Of all processes that there are, as anybody on the machine can see them."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:  # it has ended
            continue
    return "\n".join(lines)


@pytest.mark.long
def test_a_secured_registry_is_read_and_written_by(
    spark: SparkSession, checkpoint: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with (
        moldau.run(secure=True, registry=True) as broker,
        SchemaRegistryClient(broker.registry.settings) as registry,
    ):
        password = str(broker.registry.settings["basic.auth.user.info"]).partition(":")[2]
        assert broker.registry.url.startswith("https://")
        for topic in ("orders", "copies"):
            broker.create_topic(topic)
        producer = Producer(broker.clients.confluent)
        for number in (1, 2):
            producer.produce("orders", avro_bytes(registry, "orders", {"id": number, "name": "a"}))
        producer.flush()
        said = {f"kafka.{name}": str(value) for name, value in broker.clients.confluent.items()}
        said |= {f"schema.registry.{name}": str(value) for name, value in broker.registry.settings.items()}
        moldau_format = {**said, "valueFormat": "avro"}
        frame = spark.readStream.format("moldau").options(
            **moldau_format, subscribe="orders", startingOffsets="earliest"
        )
        rows = frame.load().selectExpr("struct(value.id, value.name) as value")
        writer = rows.writeStream.format("moldau").options(
            **{**moldau_format, "schema.id.serializer": "header"}, topic="copies"
        )
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        assert query.awaitTermination(240)
        plan = str(query._jsq.explainInternal(True))
        assert registry.get_latest_version("copies-value").version == 1
        assert len(read_all(broker, "copies", 2)) == 2
        batch = spark.read.format("moldau").options(**moldau_format, subscribe="copies").load()
        assert sorted(row.id for row in batch.select("value.id").collect()) == [1, 2]
        plan += str(batch._jdf.queryExecution().toString())
        progress, commands, printed = str(query.lastProgress), command_lines(), "".join(capfd.readouterr())
        wrong = {**moldau_format, "schema.registry.basic.auth.user.info": "ann:no-such-password"}
        with pytest.raises(Exception, match="401") as refused:
            spark.read.format("moldau").options(**wrong, subscribe="copies").load()
    kept = b"".join(path.read_bytes() for path in checkpoint.rglob("*") if path.is_file()).decode(errors="replace")
    for where in (plan, progress, commands, printed, kept):
        assert password not in where
    assert "no-such-password" not in str(refused.value)
