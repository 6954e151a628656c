"""Replicas that move: codes and messages are Apache Kafka's."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from moldau.controller.image import ClusterImage, PartitionImage, TopicImage
from moldau.controller.machine import apply
from moldau.controller.partitions.reassignment import WantedReplicas, decide_reassign
from moldau.controller.partitions.states import Refusal
from moldau.controller.records import BrokerRegistered
from moldau.core.config.broker import BrokerConfig
from moldau.core.errors import ErrorCode
from tests.controller.clusters import cluster, partition, topic_id

CONFIG = BrokerConfig.of({"node.id": "1"})
PROBLEM = "The manual partition assignment includes"


def image_of(state: PartitionImage, **configs: str) -> ClusterImage:
    named = {name.replace("_", "."): value for name, value in configs.items()}
    return cluster(TopicImage("orders", topic_id(1), (state,), named), brokers=5)


def reassign(image: ClusterImage, *replicas: int, same_factor: bool = False) -> PartitionImage | Refusal:
    return _only(image, WantedReplicas("orders", 0, replicas), same_factor=same_factor)


def cancel(image: ClusterImage) -> PartitionImage | Refusal:
    return _only(image, WantedReplicas("orders", 0, None))


def _only(image: ClusterImage, wanted: WantedReplicas, *, same_factor: bool = False) -> PartitionImage | Refusal:
    decision = decide_reassign(image, [wanted], config=CONFIG, may_change_replication_factor=not same_factor)
    (refusal,) = decision.reply
    return refusal or apply(image, decision.records).topics["orders"].partitions[0]


def test_new_replicas_are_added_before_old_ones_go() -> None:
    assert reassign(image_of(partition(1, 2, 3)), 4, 2, 5) == PartitionImage(
        (4, 2, 5, 1, 3), (1, 2, 3), 1, 0, 1, adding_replicas=(4, 5), removing_replicas=(1, 3)
    )


def test_what_needs_no_copy_is_done_at_once() -> None:
    assert reassign(image_of(partition(1, 2, 3)), 3, 2, 1) == PartitionImage((3, 2, 1), (1, 2, 3), 1, 0, 1)
    assert reassign(image_of(partition(1, 2, 3)), 2, 3) == PartitionImage((2, 3), (2, 3), 2, 1, 1)
    assert reassign(image_of(partition(1, 2, 3)), 1, 2) == PartitionImage((1, 2), (1, 2), 1, 1, 1)
    assert reassign(image_of(partition(1, 2, 3)), 1, 2, 3) == partition(1, 2, 3)


def test_a_replica_that_stays_but_is_not_in_sync_is_waited_for() -> None:
    image = image_of(PartitionImage((1, 2, 3), (1,), 1))
    assert reassign(image, 2, 3) == PartitionImage((2, 3, 1), (1,), 1, 0, 1, removing_replicas=(1,))


def test_another_reassignment_takes_the_place_of_the_first() -> None:
    first = reassign(image_of(partition(1, 2)), 3, 4)
    assert isinstance(first, PartitionImage)
    second = reassign(image_of(first), 1, 3)
    assert second == PartitionImage((1, 3, 2, 4), (1, 2), 1, 0, 2, adding_replicas=(3,), removing_replicas=(2, 4))
    again = reassign(image_of(first), 3, 4)
    assert again == first


def test_a_cancelled_reassignment_leaves_the_replicas_of_before() -> None:
    moving = reassign(image_of(partition(1, 2)), 3, 4)
    assert isinstance(moving, PartitionImage)
    assert cancel(image_of(moving)) == PartitionImage((1, 2), (1, 2), 1, 1, 2)
    caught_up = replace(moving, isr=(1, 2, 3))
    assert cancel(image_of(caught_up)) == PartitionImage((1, 2), (1, 2), 1, 1, 2)


def test_a_cancellation_elects_nobody_uncleanly_unless_that_is_allowed() -> None:
    moving = PartitionImage((3, 1), (3,), 3, 4, 4, adding_replicas=(3,), removing_replicas=(1,))
    message = "Unable to revert partition assignment for orders:0 because it would require an unclean leader election."
    assert cancel(image_of(moving)) == Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    for gone in (replace(moving, isr=(), leader=-1, elr=(3,)), replace(moving, isr=(), leader=-1, last_known_elr=(3,))):
        assert cancel(image_of(gone)) == Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    allowed = cancel(image_of(moving, unclean_leader_election_enable="true"))
    assert allowed == PartitionImage((1,), (1,), 1, 5, 5, leader_recovery_state=1)


def test_a_cancellation_leaves_it_to_an_eligible_replica_that_stays() -> None:
    moving = PartitionImage((3, 1), (), -1, 4, 4, adding_replicas=(3,), removing_replicas=(1,), elr=(1, 3))
    assert cancel(image_of(moving)) == PartitionImage((1,), (1,), 1, 5, 5)
    unknown = replace(moving, elr=())
    assert cancel(image_of(unknown)) == PartitionImage((1,), (), -1, 5, 5)


@pytest.mark.parametrize(
    ("wanted", "error", "message"),
    [
        (WantedReplicas("nope", 0, (1,)), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find a topic named nope."),
        (WantedReplicas("orders", 1, (1,)), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find partition orders:1."),
        (WantedReplicas("orders", 0, None), ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None),
        (WantedReplicas("orders", 0, ()), ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{PROBLEM} an empty replica list."),
        (
            WantedReplicas("orders", 0, (1, 9)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{PROBLEM} broker 9, but no such broker is registered.",
        ),
        (
            WantedReplicas("orders", 0, (2, 2)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{PROBLEM} the broker 2 more than once.",
        ),
    ],
)
def test_what_is_refused(wanted: WantedReplicas, error: ErrorCode, message: str | None) -> None:
    assert _only(image_of(partition(1, 2)), wanted) == Refusal(error, message)


def test_the_number_of_replicas_can_be_kept() -> None:
    message = "The replication factor is changed from 2 to 3"
    refusal = Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    assert reassign(image_of(partition(1, 2)), 1, 2, 3, same_factor=True) == refusal
    moving = reassign(image_of(partition(1, 2)), 3, 4, same_factor=True)
    assert isinstance(moving, PartitionImage)
    assert reassign(image_of(moving), 1, 2, 3, same_factor=True) == refusal


def test_a_fenced_broker_can_be_given_a_replica() -> None:
    image = image_of(partition(1, 2))
    image = apply(image, [BrokerRegistered(replace(image.brokers[3], fenced=True))])
    moving = reassign(image, 1, 3)
    assert isinstance(moving, PartitionImage)
    assert (moving.adding_replicas, moving.isr) == ((3,), (1, 2))
