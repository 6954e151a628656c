"""Our own Fetch requests follow the settings of a consumer, or leave the read to librdkafka."""

from __future__ import annotations

from moldau.core.ids import TopicPartition
from moldau.spark.offsets.bounds import OffsetRange
from moldau.spark.reading.fetching import can_fetch, fetch_range
from tests.spark.topics import Topics


def test_how_much_an_answer_has_is_followed(topics: Topics) -> None:
    topic = topics.create()
    for _ in range(4):
        topics.produce(topic, [bytes(5_000)])
    wanted = OffsetRange(TopicPartition(topic, 0), 0, 4)

    def rows(**limits: str) -> list[int]:
        client = {
            "bootstrap.servers": topics.bootstrap,
            **{key.replace("_", "."): each for key, each in limits.items()},
        }
        assert can_fetch(tuple(client.items()))
        return [batch.num_rows for batch in fetch_range(wanted, tuple(client.items()), ("value",))]

    assert rows() == [4]
    assert rows(fetch_max_bytes="6000", max_partition_fetch_bytes="100000") == [1, 1, 1, 1]
    assert rows(max_partition_fetch_bytes="6000") == [1, 1, 1, 1]


def test_settings_that_are_not_followed_are_left_to_librdkafka() -> None:
    usual = {"bootstrap.servers": "localhost:9092", "isolation.level": "read_committed", "fetch.wait.max.ms": "5"}
    assert can_fetch(tuple(usual.items()))
    for name, value in {"client.rack": "a", "ssl.crl.location": "/crl", "broker.address.family": "v4"}.items():
        assert not can_fetch((*usual.items(), (name, value)))
