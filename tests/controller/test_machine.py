"""Any history: its records lead to the same image in one batch, one by one, through bytes and through a snapshot."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.controller.configs import ConfigChange, ResourceChange, decide_incremental_alter_configs
from moldau.controller.image import ClusterImage, Draft
from moldau.controller.machine import apply, apply_to_draft, decide_create_cluster, snapshot_records
from moldau.controller.partitions import MorePartitions, decide_create_partitions
from moldau.controller.producer_ids import decide_allocate_producer_ids
from moldau.controller.records import Record, UnknownRecord, decode_records, encode_records
from moldau.controller.topics import NewTopic, TopicReference, decide_create_topics, decide_delete_topics
from moldau.core.config.broker import BrokerConfig
from moldau.core.decision import Decision
from tests.controller.clusters import cluster, counting_ids, topic

CONFIG = BrokerConfig.of({"node.id": "1"})
NAMES = ("a", "a.b", "a_b", "orders", "x/y")
Step = Callable[[ClusterImage], Decision[Any]]

names = st.sampled_from(NAMES)
changes = st.builds(
    ConfigChange,
    st.sampled_from(
        ["retention.ms", "segment.ms", "cleanup.policy", "log.retention.ms", "share.delivery.count.limit", "foo"]
    ),
    st.sampled_from(["1", "7", "delete", "compact"]),
    st.integers(0, 3),
)
resources = st.builds(
    ResourceChange, st.sampled_from([2, 4, 32]), st.sampled_from([*NAMES, "", "1"]), st.lists(changes, max_size=3)
)


def histories(new_id: Callable[[], Any]) -> st.SearchStrategy[list[Step]]:
    def creating(topics: list[NewTopic]) -> Step:
        return lambda image: decide_create_topics(image, topics, config=CONFIG, new_id=new_id)

    def deleting(name: str) -> Step:
        return lambda image: decide_delete_topics(image, [TopicReference(name)], config=CONFIG)

    def extending(name: str, count: int) -> Step:
        return lambda image: decide_create_partitions(image, [MorePartitions(name, count)])

    def altering(wanted: list[ResourceChange]) -> Step:
        return lambda image: decide_incremental_alter_configs(image, wanted, config=CONFIG)

    new_topics = st.builds(NewTopic, names, st.integers(-1, 4), st.integers(-1, 3))
    return st.lists(
        st.one_of(
            st.builds(creating, st.lists(new_topics, max_size=3)),
            st.builds(deleting, names),
            st.builds(extending, names, st.integers(0, 6)),
            st.builds(altering, st.lists(resources, max_size=2)),
            st.just(decide_allocate_producer_ids),
        ),
        max_size=25,
    )


@settings(max_examples=200)
@given(steps=histories(counting_ids()))
def test_records_alone_lead_to_the_same_image(steps: list[Step]) -> None:
    start = image = cluster(brokers=2)
    written: list[Record] = []
    for step in steps:
        decision = step(image)
        before, topics_before = image, dict(image.topics)
        image = apply(image, decision.records)
        assert before.topics == topics_before, "an image never changes"
        written += decision.records
    assert apply(start, written) == image
    assert apply(start, decode_records(encode_records(written))) == image
    assert apply(ClusterImage(), decode_records(encode_records(snapshot_records(image)))) == image
    assert image.topic_ids == {each.id: each.name for each in image.topics.values()}


def test_a_draft_shows_what_it_has_so_far_and_leaves_the_image_alone() -> None:
    image = cluster(topic("a"))
    draft = Draft(image)
    decision = decide_create_topics(draft.image, [NewTopic("b")], config=CONFIG)
    apply_to_draft(draft, decision.records)
    assert decide_create_topics(draft.image, [NewTopic("b")], config=CONFIG).records == ()
    finished = draft.finish()
    assert finished.topics.keys() == {"a", "b"}
    assert image.topics.keys() == {"a"}
    assert finished.changed_topics == {"b"}


def test_a_cluster_is_created_once() -> None:
    image = apply(ClusterImage(), decide_create_cluster(ClusterImage(), "one").records)
    assert decide_create_cluster(image, "two") == Decision.reply_only("one")


@pytest.mark.parametrize("payload", [b"", b"\xc1", b"\x91\x91\xa5weird", encode_records([])[:0]])
def test_bytes_of_another_version_are_refused(payload: bytes) -> None:
    with pytest.raises(UnknownRecord):
        decode_records(payload)


@given(st.binary())
def test_damaged_bytes_are_refused(payload: bytes) -> None:
    with suppress(UnknownRecord):
        decode_records(payload)
