from __future__ import annotations

from dataclasses import replace

from moldau.controller.image import BrokerImage, PartitionImage, TopicImage
from moldau.core.ids import parse_uuid
from moldau.groups.consumer.assignors import TopicShape
from moldau.groups.consumer.metadata_hash import combined_hash, topic_hash
from moldau.groups.consumer.topics import Topics
from tests.groups.consumer.worlds import image_of, topic, topic_id, topics_of

# As Apache Kafka 4.3.1 wrote them for topics of its own.
KAFKA_HASHES = [
    ("uP70hw96T1mCjRPGisgqKA", "consumer-groups-static-members-t", 2, 5286305764798099743),
    ("ybj8-5uVSMSH89hQlR_0Sg", "consumer-groups-members-share-t", 3, 9157777941552656207),
]


def test_the_hash_is_that_of_apache_kafka() -> None:
    for uuid, name, partitions, expected in KAFKA_HASHES:
        image = TopicImage(name, parse_uuid(uuid), tuple(PartitionImage((1,), (1,), 1) for _ in range(partitions)))
        assert combined_hash([topic_hash(image, {1: BrokerImage(1, {})})]) == expected


def test_the_hash_differs_with_every_change_that_matters_to_a_group() -> None:
    small, large = topic("t", 1), topic("t", 2)
    hashes = {
        topic_hash(small, {}),
        topic_hash(large, {}),
        topic_hash(topic("u", 1), {}),
        topic_hash(TopicImage("t", topic_id("other"), small.partitions), {}),
        topic_hash(small, {0: BrokerImage(0, {}, rack="r")}),
    }
    assert len(hashes) == 5
    moved = TopicImage("t", small.id, (PartitionImage((0,), (0,), -1, leader_epoch=9),))
    assert topic_hash(moved, {}) == topic_hash(small, {})


def test_nothing_has_the_hash_0_and_the_order_of_names_does_not_matter() -> None:
    topics = topics_of({"a": 1, "b": 2})
    assert topics.hash_of([]) == topics.hash_of(["nowhere"]) == 0
    assert topics.hash_of(["a", "b"]) == topics.hash_of(["b", "nowhere", "a"]) != topics.hash_of(["a"])


def test_what_is_asked_of_topics() -> None:
    topics = topics_of({"a": 1, "b": 2})
    assert topics.ids_of(["a", "nowhere"]) == {topic_id("a")}
    assert topics.shapes(["b", "nowhere"]) == {topic_id("b"): TopicShape(topic_id("b"), 2)}
    assert (topics.name_of(topic_id("a")), topics.name_of(topic_id("x"))) == ("a", None)
    assert list(topics.names) == ["a", "b"]


def test_versions_rise_and_tell_when_the_last_topic_came() -> None:
    first = Topics().followed_by(image_of({"a": 1}), now_ms=50)
    assert (first.version, first.grown_version) == (50, 50)
    larger = first.followed_by(replace(image_of({"a": 2}), changed_topics=frozenset({"a"})), now_ms=50)
    assert (larger.version, larger.grown_version) == (51, 50)
    grown = larger.followed_by(replace(image_of({"a": 2, "b": 1}), changed_topics=frozenset({"b"})), now_ms=90)
    assert (grown.version, grown.grown_version) == (90, 90)
    gone = grown.followed_by(replace(image_of({"b": 1}), changed_topics=frozenset({"a"})), now_ms=95)
    assert (gone.version, gone.grown_version) == (95, 90)
