"""Any history: its records lead to the same image in one batch, one by one, through bytes and through a snapshot."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from moldau.controller.image import ClusterImage, Draft, PartitionImage
from moldau.controller.machine import apply, apply_to_draft, decide_create_cluster, snapshot_records
from moldau.controller.partitions.states import MorePartitions, decide_create_partitions
from moldau.controller.producer_ids import decide_allocate_producer_ids
from moldau.controller.records import PartitionsChanged, Record, UnknownRecord, decode_records, encode_records
from moldau.controller.settings.acls import decide_create_acls, decide_delete_acls
from moldau.controller.settings.configs import ConfigChange, ResourceChange, decide_incremental_alter_configs
from moldau.controller.settings.delegation_tokens import (
    TokenLifetimes,
    decide_create_token,
    decide_expire_token,
    decide_remove_expired_tokens,
)
from moldau.controller.settings.quotas import QuotaAlteration, decide_alter_client_quotas, quota_entity
from moldau.controller.settings.scram_credentials import (
    CredentialDeletion,
    CredentialUpsertion,
    decide_alter_scram_credentials,
)
from moldau.controller.topics import NewTopic, TopicReference, decide_create_topics, decide_delete_topics
from moldau.core.config.broker import BrokerConfig
from moldau.core.decision import Decision
from moldau.security.acls.bindings import Acl, AclFilter
from moldau.security.acls.vocabulary import PatternType
from moldau.security.principals import Principal
from tests.controller.clusters import cluster, counting_ids, topic
from tests.security.acls.bindings import acls

CONFIG = BrokerConfig.of({"node.id": "1"})
BROKER_RESOURCE = 4
OWNER, LIFETIMES = Principal("User", "alice"), TokenLifetimes(max_ms=15, renewal_ms=10)
NAMES = ("a", "a.b", "a_b", "orders", "x/y")
Step = Callable[[ClusterImage], Decision[Any]]

names = st.sampled_from(NAMES)
users, mechanisms = st.sampled_from(["alice", "bob"]), st.integers(0, 3)
upsertions = st.builds(CredentialUpsertion, users, mechanisms, st.sampled_from([1, 4096]), st.just(b"s"), st.just(b"p"))
deletions = st.builds(CredentialDeletion, users, mechanisms)
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
quota_entities = st.dictionaries(
    st.sampled_from(["user", "client-id", "ip"]), st.sampled_from([None, "a", "1.2.3.4"]), max_size=2
).map(lambda parts: quota_entity(parts.items()))
quota_changes = st.tuples(
    st.sampled_from(["producer_byte_rate", "request_percentage", "connection_creation_rate"]),
    st.sampled_from([None, 0.5, 1.0, 2.0]),
)
alterations = st.builds(QuotaAlteration, quota_entities, st.lists(quota_changes, max_size=3))
acl_filters = st.builds(
    AclFilter,
    resource_name=st.sampled_from([None, "a", "abc", "b"]),
    pattern_type=st.sampled_from([PatternType.ANY, PatternType.MATCH, PatternType.LITERAL]),
    principal=st.sampled_from([None, "User:alice"]),
)


def token_steps() -> st.SearchStrategy[Step]:
    def issuing(name: str, lifetime_ms: int) -> Step:
        return lambda _: decide_create_token(
            token_id=name,
            owner=OWNER,
            requester=OWNER,
            renewers=[],
            max_lifetime_ms=lifetime_ms,
            lifetimes=LIFETIMES,
            now_ms=0,
        )

    def expiring(name: str, period_ms: int) -> Step:
        return lambda image: decide_expire_token(image, name, requester=OWNER, period_ms=period_ms, now_ms=1)

    def sweeping(now_ms: int) -> Step:
        return lambda image: decide_remove_expired_tokens(image, now_ms)

    return st.one_of(
        st.builds(issuing, names, st.integers(-1, 20)),
        st.builds(expiring, names, st.integers(-1, 20)),
        st.builds(sweeping, st.integers(0, 20)),
    )


def histories(new_id: Callable[[], Any]) -> st.SearchStrategy[list[Step]]:
    def creating(topics: list[NewTopic]) -> Step:
        return lambda image: decide_create_topics(image, topics, config=CONFIG, new_id=new_id)

    def deleting(name: str) -> Step:
        return lambda image: decide_delete_topics(image, [TopicReference(name)], config=CONFIG)

    def crediting(wanted: list[CredentialUpsertion], unwanted: list[CredentialDeletion]) -> Step:
        return lambda image: decide_alter_scram_credentials(image, unwanted, wanted)

    def extending(name: str, count: int) -> Step:
        return lambda image: decide_create_partitions(image, [MorePartitions(name, count)])

    def altering(wanted: list[ResourceChange]) -> Step:
        return lambda image: decide_incremental_alter_configs(image, wanted, config=CONFIG)

    def limiting(wanted: list[QuotaAlteration]) -> Step:
        return lambda image: decide_alter_client_quotas(image, wanted)

    def permitting(new: list[Acl]) -> Step:
        return lambda image: decide_create_acls(image, new, new_id=new_id)

    def withdrawing(filters: list[AclFilter]) -> Step:
        return lambda image: decide_delete_acls(image, filters)

    new_topics = st.builds(NewTopic, names, st.integers(-1, 4), st.integers(-1, 3))
    return st.lists(
        st.one_of(
            st.builds(creating, st.lists(new_topics, max_size=3)),
            st.builds(deleting, names),
            st.builds(crediting, st.lists(upsertions, max_size=2), st.lists(deletions, max_size=2)),
            st.builds(extending, names, st.integers(0, 6)),
            st.builds(altering, st.lists(resources, max_size=2)),
            st.builds(limiting, st.lists(alterations, max_size=3)),
            st.just(decide_allocate_producer_ids),
            st.builds(permitting, st.lists(acls, max_size=3)),
            st.builds(withdrawing, st.lists(acl_filters, max_size=2)),
            token_steps(),
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
    assert apply(ClusterImage(), decode_records(encode_records([*snapshot_records(image)]))) == image
    assert image.topic_ids == {each.id: each.name for each in image.topics.values()}
    assert image.acl_ids == {acl: acl_id for acl_id, acl in image.acls.items()}
    assert len(image.acl_ids) == len(image.acls)


def test_a_snapshot_keeps_eligible_replicas_beside_a_min_insync_replicas_of_the_cluster() -> None:
    """A change of it clears them, and what a snapshot says of it is no change."""
    state = PartitionImage((1, 2), (2,), 2, elr=(1,))
    image = cluster(replace(topic("a"), partitions=(state,)), brokers=2)
    changed = [ResourceChange(BROKER_RESOURCE, "", [ConfigChange("min.insync.replicas", "2")])]
    image = apply(image, decide_incremental_alter_configs(image, changed, config=CONFIG).records)
    assert image.topics["a"].partitions[0].elr == ()
    image = apply(image, [PartitionsChanged(image.topics["a"].id, {0: state})])
    assert apply(ClusterImage(), snapshot_records(image)) == image


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
