"""Replicas in log directories that failed."""

from __future__ import annotations

from msgspec.structs import replace

from moldau.controller.image import ClusterImage, PartitionImage, TopicImage
from moldau.controller.machine import apply
from moldau.controller.members.failed_directories import (
    FULL,
    LOST,
    UNASSIGNED,
    ReplicaInDirectory,
    decide_assign_replicas_to_dirs,
)
from moldau.controller.records import BrokerRegistered
from moldau.core.config.broker import BrokerConfig
from moldau.core.errors import ErrorCode
from moldau.core.ids import NO_LEADER, format_uuid, random_uuid
from tests.controller.clusters import cluster, partition, topic_id

CONFIG = BrokerConfig.of({"node.id": "1"})
ORDERS = topic_id(1)
HOME = random_uuid()


def image_of(*states: PartitionImage) -> ClusterImage:
    image = cluster(TopicImage("orders", ORDERS, states), brokers=3)
    home = {format_uuid(HOME): "/data"}
    return apply(
        image, [BrokerRegistered(replace(each, epoch=each.id, directories=home)) for each in image.brokers.values()]
    )


def assign(
    image: ClusterImage, directory: bytes, *indexes: int, broker: int = 1
) -> tuple[ClusterImage, list[ErrorCode]]:
    replicas = [ReplicaInDirectory(directory, ORDERS, index) for index in indexes]
    decision = decide_assign_replicas_to_dirs(image, broker, broker, replicas, config=CONFIG)
    assert not isinstance(decision.reply, ErrorCode)
    return apply(image, decision.records), decision.reply


def test_another_leads_what_was_in_a_directory_that_failed() -> None:
    image, errors = assign(image_of(partition(1, 2), partition(2, 1), partition(1)), LOST, 0, 1, 2)
    assert errors == [ErrorCode.NONE] * 3
    first, second, third = image.topics["orders"].partitions
    assert (first.leader, first.isr, first.offline) == (2, (2,), (1,))
    assert (second.leader, second.isr, second.offline) == (2, (2,), (1,))
    assert (third.leader, third.isr, third.elr, third.offline) == (NO_LEADER, (), (1,), (1,))


def test_a_directory_that_the_broker_does_not_have_is_as_good_as_lost() -> None:
    image, _ = assign(image_of(partition(1, 2)), random_uuid(), 0)
    assert image.topics["orders"].partitions[0].offline == (1,)
    for online in (HOME, UNASSIGNED):
        same, errors = assign(image_of(partition(1, 2)), online, 0)
        assert (same.topics["orders"].partitions[0], errors) == (partition(1, 2), [ErrorCode.NONE])


def test_a_replica_in_a_directory_that_is_there_may_lead_again() -> None:
    image, _ = assign(image_of(partition(1)), LOST, 0)
    image, _ = assign(image, HOME, 0)
    state = image.topics["orders"].partitions[0]
    assert (state.leader, state.isr, state.offline, state.leader_epoch) == (1, (1,), (), 2)


def test_without_room_another_leads_but_the_last_in_sync_stays() -> None:
    image, errors = assign(image_of(partition(1, 2, 3), partition(1)), FULL, 0, 1)
    assert errors == [ErrorCode.NONE] * 2
    image, _ = assign(image, FULL, 0, broker=2)
    image, _ = assign(image, FULL, 0, broker=3)
    first, second = image.topics["orders"].partitions
    assert (first.leader, first.isr, first.offline) == (3, (3,), (1, 2))
    assert second == partition(1)
    image, _ = assign(image, HOME, 0)
    assert image.topics["orders"].partitions[0].offline == (2,)


def test_what_is_refused() -> None:
    image = image_of(partition(1, 2))
    _, errors = assign(image, LOST, 7)
    assert errors == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    _, errors = assign(image, LOST, 0, broker=3)
    assert errors == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    strange = [ReplicaInDirectory(LOST, topic_id(9), 0)]
    assert decide_assign_replicas_to_dirs(image, 1, 1, strange, config=CONFIG).reply == [ErrorCode.UNKNOWN_TOPIC_ID]
    stale = decide_assign_replicas_to_dirs(image, 1, 7, strange, config=CONFIG).reply
    assert stale is ErrorCode.STALE_BROKER_EPOCH
