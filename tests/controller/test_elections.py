"""Leaders that go with a log directory, and come back with a new epoch."""

from __future__ import annotations

from moldau.controller.elections import decide_lead_again, decide_leaderless
from moldau.controller.machine import apply, snapshot_records
from moldau.controller.records import LeadersChanged, decode_records, encode_records
from moldau.core.decision import Decision
from moldau.core.ids import NO_LEADER, TopicPartition
from tests.controller.clusters import cluster, topic, topic_id

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
