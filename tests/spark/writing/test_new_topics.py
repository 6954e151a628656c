"""Topics that sinks make have the partitions and settings that were asked for."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import ConfigResource, ResourceType

from moldau.spark.clients.librdkafka import NoAnswer
from moldau.spark.option_values import OptionError
from moldau.spark.writing.batch_job import write_batch
from moldau.spark.writing.new_topics import NewTopicSettings, make_topic, new_topic_settings
from tests.spark.topics import ANSWER_S_MAX, Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMPACTED = {"topicPartitions": "3", "topicConfig.cleanup.policy": "compact", "topicConfig.segment.ms": "60000"}


def settings_of(topics: Topics, topic: str) -> tuple[int, str, str]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    told = topics.admin.describe_configs([resource])[resource].result(ANSWER_S_MAX)
    partitions = len(topics.admin.list_topics(topic).topics[topic].partitions)
    return partitions, told["cleanup.policy"].value, told["segment.ms"].value


def write_row(spark: SparkSession, topics: Topics, topic: str) -> None:
    frame = spark.createDataFrame([("k", "v")], "key string, value string")
    writer = frame.write.format("moldau").mode("append").option("kafka.bootstrap.servers", topics.bootstrap)
    writer.options(topic=topic, **{"kafka.delivery.timeout.ms": "5000"}, **COMPACTED).save()


def test_a_batch_write_makes_its_topic(spark: SparkSession, topics: Topics) -> None:
    topic = topics.name("compacted")
    write_row(spark, topics, topic)
    assert settings_of(topics, topic) == (3, "compact", "60000")
    assert topics.values(topic) == [b"v"]


@pytest.mark.parametrize("way", ["by_source", "by_job"])
def test_a_topic_that_is_deleted_between_two_batches_is_made_again(
    spark: SparkSession, topics: Topics, way: str
) -> None:
    topic = topics.name("compacted")
    for batch in ("0", "1"):
        if way == "by_source":
            write_row(spark, topics, topic)
        else:
            options = {"kafka.bootstrap.servers": topics.bootstrap, "topic": topic, "queryId": topic, "batchId": batch}
            write_batch(spark.createDataFrame([("k", "v")], "key string, value string"), {**options, **COMPACTED})
        assert settings_of(topics, topic) == (3, "compact", "60000")
        assert topics.values(topic) == [b"v"]
        topics.delete(topic)


def test_a_topic_that_is_there_stays_as_it_is(topics: Topics, caplog: pytest.LogCaptureFixture) -> None:
    topic = topics.create(partitions=2)
    before = settings_of(topics, topic)
    client = (("bootstrap.servers", topics.bootstrap),)
    with caplog.at_level(logging.WARNING):
        make_topic(client, topic, new_topic_settings({"topic": topic, **COMPACTED}))
    assert settings_of(topics, topic) == before
    said = [record.getMessage() for record in caplog.records]
    assert said[0] == f"topic {topic} is there and stays as it is: topicPartitions = 3 was asked for, it has 2"
    assert len(said) == 3


def test_settings_that_cannot_be_are_told(topics: Topics) -> None:
    topic = topics.name("refused")
    unknown = new_topic_settings({"topic": topic, "topicConfig.cleanup.polcy": "compact"})
    with pytest.raises(NoAnswer, match=f"topic {topic} can't be made: .*cleanup.polcy"):
        make_topic((("bootstrap.servers", topics.bootstrap),), topic, unknown)
    with pytest.raises(OptionError, match="topicPartitions = 'many': allowed is a whole number above 0"):
        new_topic_settings({"topic": topic, "topicPartitions": "many"})
    with pytest.raises(OptionError, match="need the option topic"):
        new_topic_settings({"topicPartitions": "2"})
    assert not new_topic_settings({"topic": topic}).are_given
    assert new_topic_settings({"topic": topic, "TOPICPARTITIONS": "2"}) == NewTopicSettings(partitions=2)
