"""Elections by request and from time to time; leaders that go with a log directory, and come back with a new epoch."""

from __future__ import annotations

from msgspec.structs import replace

from moldau.broker.leaders import offline_replicas
from moldau.controller.image import RECOVERING, ClusterImage, PartitionImage, TopicImage
from moldau.controller.machine import apply, snapshot_records
from moldau.controller.partitions.elections import (
    decide_balance_leaders,
    decide_elect_leaders,
    decide_elect_unclean,
    imbalanced,
    leaderless,
)
from moldau.controller.partitions.leaders import PREFERRED, UNCLEAN, decide_lead_again, decide_leaderless
from moldau.controller.partitions.states import Refusal
from moldau.controller.records import BrokerRegistered, LeadersChanged, decode_records, encode_records
from moldau.core.config.broker import BrokerConfig
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.ids import NO_LEADER, TopicPartition
from tests.controller.clusters import cluster, partition, topic, topic_id

CONFIG = BrokerConfig.of({"node.id": "1"})
IMAGE = cluster(topic("orders", 3), topic("returns", 1, number=101), brokers=2)


def of(name: str, *indexes: int) -> list[TopicPartition]:
    return [TopicPartition(name, index) for index in indexes]


def test_a_clean_start_decides_nothing() -> None:
    assert decide_lead_again(IMAGE, 1, []) == Decision.reply_only([])


def test_an_unclean_start_is_one_record_for_each_topic() -> None:
    unclean = of("orders", 2, 0) + of("returns", 0) + of("gone", 0) + of("orders", 7)
    decision = decide_lead_again(IMAGE, 1, unclean)
    assert decision.records == (LeadersChanged(topic_id(100), 1, (0, 2)), LeadersChanged(topic_id(101), 1, (0,)))
    image = apply(IMAGE, decode_records(encode_records(decision.records)))
    assert [(each.leader, each.leader_epoch) for each in image.topics["orders"].partitions] == [(1, 1), (1, 0), (1, 1)]
    assert apply(cluster(), snapshot_records(image)) == image


def test_what_another_broker_leads_is_left_to_it() -> None:
    assert decide_lead_again(IMAGE, 2, of("orders", 0)) == Decision.reply_only([])
    assert decide_leaderless(IMAGE, 2, of("orders", 0)) == Decision.reply_only([])


def test_a_directory_that_failed_leaves_its_partitions_without_a_leader_until_the_next_start() -> None:
    gone = decide_leaderless(IMAGE, 1, of("orders", 1))
    image = apply(IMAGE, gone.records)
    state = image.topics["orders"].partitions[1]
    assert (state.leader, state.leader_epoch, state.isr) == (NO_LEADER, 1, (1,))
    again = decide_lead_again(image, 1, [])
    assert again.reply == of("orders", 1)
    state = apply(image, again.records).topics["orders"].partitions[1]
    assert (state.leader, state.leader_epoch) == (1, 2)


def cluster_of(*states: PartitionImage, fenced: tuple[int, ...] = (), unclean: bool = False) -> ClusterImage:
    configs = {"unclean.leader.election.enable": "true"} if unclean else {}
    image = cluster(TopicImage("orders", topic_id(100), states, configs), brokers=3)
    return apply(image, [BrokerRegistered(replace(image.brokers[each], fenced=True)) for each in fenced])


def elect(image: ClusterImage, kind: int, *indexes: int) -> tuple[ClusterImage, list[ErrorCode]]:
    decision = decide_elect_leaders(image, kind, of("orders", *indexes), config=CONFIG)
    errors = [ErrorCode.NONE if each.refusal is None else each.refusal.error for each in decision.reply]
    return apply(image, decision.records), errors


def test_the_preferred_replica_leads_if_it_is_in_sync_and_active() -> None:
    moved = PartitionImage((1, 2, 3), (2, 1), 2, 4, 4)
    behind = PartitionImage((1, 2, 3), (2, 3), 2, 4, 4)
    image, errors = elect(cluster_of(moved, behind, partition(1, 2)), PREFERRED, 0, 1, 2)
    assert errors == [
        ErrorCode.NONE,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
    ]
    assert image.topics["orders"].partitions == (
        replace(moved, leader=1, leader_epoch=5, partition_epoch=5),
        behind,
        partition(1, 2),
    )
    _, errors = elect(cluster_of(moved, fenced=(1,)), PREFERRED, 0)
    assert errors == [ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE]


def test_an_unclean_election_by_request_needs_no_configuration() -> None:
    lost = PartitionImage((1, 2, 3), (), NO_LEADER, 4, 4, elr=(1,), last_known_elr=(1,))
    image, errors = elect(cluster_of(lost, partition(2), fenced=(1,)), UNCLEAN, 0, 1)
    assert errors == [ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED]
    assert image.topics["orders"].partitions[0] == PartitionImage(
        (1, 2, 3), (2,), 2, 5, 5, leader_recovery_state=RECOVERING
    )
    _, errors = elect(cluster_of(lost, fenced=(1, 2, 3)), UNCLEAN, 0)
    assert errors == [ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE]


def test_a_replica_without_its_directory_is_elected_by_nobody() -> None:
    lost = PartitionImage((1,), (), NO_LEADER, 4, 4, elr=(1,), offline=(1,))
    _, errors = elect(cluster_of(lost), UNCLEAN, 0)
    assert errors == [ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE]


def test_a_partition_that_is_named_twice_is_elected_once() -> None:
    moved = PartitionImage((1, 2), (2, 1), 2)
    image, errors = elect(cluster_of(moved), PREFERRED, 0, 0)
    assert errors == [ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED]
    assert image.topics["orders"].partitions[0].leader_epoch == 1


def test_what_is_not_there_can_not_be_elected() -> None:
    asked = [*of("orders", 7), *of("nope", 0)]
    replies = decide_elect_leaders(cluster_of(partition(1)), PREFERRED, asked, config=CONFIG).reply
    assert [each.refusal for each in replies] == [
        Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "No such partition as orders-7"),
        Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "No such topic as nope"),
    ]


def test_leaders_are_balanced_where_the_preferred_replica_is_in_sync() -> None:
    moved, behind = PartitionImage((1, 2), (2, 1), 2), PartitionImage((1, 2), (2,), 2)
    image = cluster_of(moved, behind, partition(1, 2))
    found = list(imbalanced(image.topics["orders"]))
    assert found == of("orders", 0)
    decision = decide_balance_leaders(image, [*found, *of("gone", 0)], config=CONFIG)
    assert decision.reply == 1
    assert apply(image, decision.records).topics["orders"].partitions[0].leader == 1
    assert decide_balance_leaders(cluster_of(moved, fenced=(1,)), found, config=CONFIG).reply == 0


def test_a_topic_that_allows_it_by_now_gets_unclean_leaders() -> None:
    lost = PartitionImage((1, 2), (), NO_LEADER, elr=(1,))
    for unclean, count in ((False, 0), (True, 1)):
        image = cluster_of(lost, fenced=(1,), unclean=unclean)
        found = list(leaderless(image.topics["orders"]))
        decision = decide_elect_unclean(image, found, config=CONFIG)
        assert (found, decision.reply) == (of("orders", 0), count)


def test_a_replica_offline_is_told_from_one_whose_broker_is_there() -> None:
    image = cluster_of(replace(partition(1, 2, 3), offline=(2,)), fenced=(3,))
    assert offline_replicas(image.topics["orders"].partitions[0], image) == [2, 3]
