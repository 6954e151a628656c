"""AlterPartition: the checks and their order are Apache Kafka's."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from moldau.controller.image import RECOVERED, RECOVERING, ClusterImage, PartitionImage, TopicImage
from moldau.controller.machine import apply
from moldau.controller.partitions.isr_changes import AlteredPartition, InSync, WantedIsr, decide_alter_partition
from moldau.controller.records import BrokerRegistered, PartitionsChanged
from moldau.core.config.broker import BrokerConfig
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicId
from tests.controller.clusters import cluster, topic_id

CONFIG = BrokerConfig.of({"node.id": "1"})
ORDERS = topic_id(1)
STATE = PartitionImage((1, 2, 3), (1, 2), 1, leader_epoch=5, partition_epoch=7)


def image_of(state: PartitionImage = STATE) -> ClusterImage:
    image = cluster(TopicImage("orders", ORDERS, (state,), {"min.insync.replicas": "2"}), brokers=4)
    return apply(image, [BrokerRegistered(replace(each, epoch=10 + each.id)) for each in image.brokers.values()])


def wanted(
    *isr: int | tuple[int, int],
    topic: TopicId = ORDERS,
    partition: int = 0,
    leader_epoch: int = 5,
    partition_epoch: int = 7,
    recovery: int = RECOVERED,
) -> WantedIsr:
    members = tuple(InSync(*each) if isinstance(each, tuple) else InSync(each, 10 + each) for each in isr)
    return WantedIsr(topic, partition, leader_epoch, partition_epoch, members, recovery)


def alter(image: ClusterImage, *asked: WantedIsr, broker_id: int = 1) -> Decision[list[AlteredPartition] | ErrorCode]:
    return decide_alter_partition(image, broker_id, 10 + broker_id, asked, config=CONFIG)


def error_of(image: ClusterImage, asked: WantedIsr, broker_id: int = 1) -> ErrorCode:
    reply = alter(image, asked, broker_id=broker_id).reply
    assert not isinstance(reply, ErrorCode)
    return reply[0].error


def test_a_replica_that_caught_up_joins_and_the_leader_stays() -> None:
    decision = alter(image_of(), wanted(1, 2, 3))
    after = replace(STATE, isr=(1, 2, 3), partition_epoch=8)
    assert decision.records == (PartitionsChanged(ORDERS, {0: after}),)
    assert decision.reply == [AlteredPartition(ORDERS, 0, state=after)]


def test_one_that_falls_behind_leaves_and_below_the_minimum_it_is_eligible() -> None:
    decision = alter(image_of(), wanted(1))
    after = replace(STATE, isr=(1,), elr=(2,), partition_epoch=8)
    assert decision.reply == [AlteredPartition(ORDERS, 0, state=after)]
    back = alter(image_of(after), wanted(1, 2, partition_epoch=8))
    assert back.reply == [AlteredPartition(ORDERS, 0, state=replace(after, isr=(1, 2), elr=(), partition_epoch=9))]


def test_the_same_isr_again_changes_nothing() -> None:
    decision = alter(image_of(), wanted(1, 2))
    assert decision == Decision(records=(), reply=[AlteredPartition(ORDERS, 0, state=STATE)])


def test_partitions_of_one_request_see_each_other() -> None:
    decision = alter(image_of(), wanted(1), wanted(1, 2))
    assert isinstance(decision.reply, list)
    assert [each.error for each in decision.reply] == [ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION]


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (wanted(1, topic=topic_id(9)), ErrorCode.UNKNOWN_TOPIC_ID),
        (wanted(1, partition=1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (wanted(1, partition=-1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (wanted(9, leader_epoch=6), ErrorCode.NOT_CONTROLLER),
        (wanted(9, leader_epoch=4, partition_epoch=8), ErrorCode.NOT_CONTROLLER),
        (wanted(9, leader_epoch=4, partition_epoch=6), ErrorCode.FENCED_LEADER_EPOCH),
        (wanted(9, partition_epoch=6), ErrorCode.INVALID_UPDATE_VERSION),
        (wanted(1, 9), ErrorCode.INVALID_REQUEST),
        (wanted(1, 1), ErrorCode.INVALID_REQUEST),
        (wanted(2, 3), ErrorCode.INVALID_REQUEST),
        (wanted(1, 2, recovery=RECOVERING), ErrorCode.INVALID_REQUEST),
        (wanted(1, recovery=RECOVERING), ErrorCode.INVALID_REQUEST),
        (wanted(1, recovery=2), ErrorCode.INVALID_REQUEST),
        (wanted(1, 2, (3, 12)), ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_what_is_refused(asked: WantedIsr, error: ErrorCode) -> None:
    decision = alter(image_of(), asked)
    assert decision.records == ()
    assert error_of(image_of(), asked) is error


def test_only_the_leader_speaks_for_a_partition() -> None:
    assert error_of(image_of(), wanted(1, 2), broker_id=2) is ErrorCode.INVALID_REQUEST


def test_a_process_that_was_replaced_is_not_heard() -> None:
    assert decide_alter_partition(image_of(), 1, 10, [wanted(1)], config=CONFIG).reply is ErrorCode.STALE_BROKER_EPOCH
    assert decide_alter_partition(image_of(), 7, 17, [wanted(1)], config=CONFIG).reply is ErrorCode.STALE_BROKER_EPOCH


@pytest.mark.parametrize("unable", ["fenced", "in_controlled_shutdown"])
def test_who_can_not_lead_can_not_be_in_sync(unable: str) -> None:
    image = image_of()
    image = apply(image, [BrokerRegistered(replace(image.brokers[3], **{unable: True}))])
    assert error_of(image, wanted(1, 2, 3)) is ErrorCode.INELIGIBLE_REPLICA
    assert error_of(image_of(), wanted(1, 2, (3, -1))) is ErrorCode.NONE, "a leader that does not know the epoch"


def test_a_replica_without_a_directory_can_not_join_and_may_stay() -> None:
    assert error_of(image_of(replace(STATE, offline=(3,))), wanted(1, 2, 3)) is ErrorCode.INELIGIBLE_REPLICA
    assert error_of(image_of(replace(STATE, offline=(2,))), wanted(1, 2, 3)) is ErrorCode.NONE


def test_a_leader_has_recovered_when_it_says_so() -> None:
    image = image_of(replace(STATE, isr=(1,), leader_recovery_state=RECOVERING))
    assert error_of(image, wanted(1, 2, recovery=RECOVERING)) is ErrorCode.INVALID_REQUEST
    reply = alter(image, wanted(1, recovery=RECOVERING)).reply
    assert isinstance(reply, list)
    assert reply[0].state is not None
    assert reply[0].state.leader_recovery_state == RECOVERING
    reply = alter(image, wanted(1, 2)).reply
    assert isinstance(reply, list)
    assert reply[0].state is not None
    assert (reply[0].state.isr, reply[0].state.leader_recovery_state) == ((1, 2), RECOVERED)


def test_the_last_replica_that_catches_up_completes_a_reassignment() -> None:
    moving = PartitionImage((2, 3, 1), (1, 2), 1, 5, 7, adding_replicas=(3,), removing_replicas=(1,))
    decision = alter(image_of(moving), wanted(1, 2, 3))
    assert decision.reply == [AlteredPartition(ORDERS, 0, ErrorCode.NEW_LEADER_ELECTED)]
    after = PartitionImage((2, 3), (2, 3), 2, 6, 8)
    assert decision.records == (PartitionsChanged(ORDERS, {0: after}),)


def test_a_leader_that_stays_goes_on_with_a_new_epoch_when_others_are_removed() -> None:
    moving = PartitionImage((1, 3, 2), (1, 2), 1, 5, 7, adding_replicas=(3,), removing_replicas=(2,))
    decision = alter(image_of(moving), wanted(1, 2, 3))
    after = PartitionImage((1, 3), (1, 3), 1, 6, 8)
    assert decision.reply == [AlteredPartition(ORDERS, 0, state=after)]
