"""The driver's questions to a cluster whose broker is away for a moment, or for good."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import moldau
from moldau.core.ids import TopicPartition
from moldau.spark.clients.cluster import Cluster
from moldau.spark.clients.librdkafka import NoAnswer
from moldau.spark.options import source_options
from tests.spark.topics import Topics


def test_a_broker_that_is_restarted_is_waited_for(tmp_path: Path) -> None:
    data = tmp_path / "data"
    broker = moldau.run(data_dir=data)
    topics = Topics(broker.bootstrap_servers)
    topic = topics.create(partitions=2)
    topics.produce(topic, [b"x"] * 3, partition=1)
    options = source_options({"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic}, streaming=True)
    cluster = Cluster(options.client)
    ends = {TopicPartition(topic, 0): 0, TopicPartition(topic, 1): 3}
    assert cluster.latest(ends) == ends
    broker.kill()
    back: list[moldau.EmbeddedBroker] = []
    # The client has to find nobody first: the broker comes back while the question is open.
    timer = threading.Timer(2.0, lambda: back.append(moldau.run(data_dir=data, port=broker.port)))
    timer.start()
    try:
        assert cluster.latest(ends) == ends
        assert cluster.places(options.subscription) == set(ends)
    finally:
        timer.join()
        back[0].stop()


def test_a_missing_partition_is_an_error_with_its_name(topics: Topics) -> None:
    topic = topics.create()
    cluster = Cluster(
        source_options({"kafka.bootstrap.servers": topics.bootstrap, "subscribe": topic}, streaming=True).client
    )
    with pytest.raises(NoAnswer, match=f"the latest offsets of {topic}-0, {topic}-7"):
        cluster.latest([TopicPartition(topic, 0), TopicPartition(topic, 7)])
