"""Brokers that come, go, start anew and want to stop, and what that is for their partitions."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from moldau.controller.image import RECOVERED, RECOVERING, ClusterImage, PartitionImage, TopicImage
from moldau.controller.machine import apply
from moldau.controller.members import membership
from moldau.controller.members.failed_directories import LOST, ReplicaInDirectory, decide_assign_replicas_to_dirs
from moldau.controller.members.membership import (
    Cursor,
    decide_fence_broker,
    decide_follow_registrations,
    decide_settle,
    decide_unregister_broker,
)
from moldau.controller.members.registration import BrokerRegistration, encode_registration, serving
from moldau.controller.partitions.elections import decide_elect_leaders
from moldau.controller.partitions.isr_changes import InSync, WantedIsr, decide_alter_partition
from moldau.controller.partitions.leaders import UNCLEAN
from moldau.controller.partitions.states import Refusal
from moldau.controller.records import BrokerRegistered, PartitionsChanged, TopicCreated
from moldau.core.config.broker import BrokerConfig
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.ids import NO_LEADER, TopicPartition
from moldau.store.store import Registration
from tests.controller.clusters import ENDPOINTS, partition, topic_id

CONFIG = BrokerConfig.of({"node.id": "1"})
CONTROLLER = 1


def living(
    broker_id: int, start: str = "first", *, whole: bool = True, stops: bool = False, lost: bool = False
) -> BrokerRegistration:
    incarnation = f"{broker_id}{start}".encode()
    return BrokerRegistration(
        broker_id,
        incarnation,
        ENDPOINTS,
        has_whole_logs=whole,
        wants_shutdown=stops,
        lost={topic_id(1): (0,)} if lost else {},
    )


def follow(image: ClusterImage, *registrations: BrokerRegistration) -> ClusterImage:
    decision = decide_follow_registrations(image, registrations, controller_id=CONTROLLER, config=CONFIG)
    after = apply(image, decision.records)
    again = decide_follow_registrations(after, registrations, controller_id=CONTROLLER, config=CONFIG)
    assert again == Decision.reply_only(None), "what was followed needs nothing more"
    return after


def three(*replicas: Sequence[int], min_isr: int = 1, unclean: bool = False) -> ClusterImage:
    """Brokers 1 to 3, and a topic with such partitions."""
    image = follow(ClusterImage(), living(1), living(2), living(3))
    configs = {"min.insync.replicas": str(min_isr), "unclean.leader.election.enable": str(unclean).lower()}
    partitions = tuple(partition(*each) for each in replicas or [(1, 2, 3)])
    return apply(image, [TopicCreated(TopicImage("orders", topic_id(1), partitions, configs))])


def state(image: ClusterImage, index: int = 0) -> PartitionImage:
    return image.topics["orders"].partitions[index]


def led(image: ClusterImage, index: int = 0) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Leader, ISR and ELR."""
    found = state(image, index)
    return found.leader, found.isr, found.elr


def elect_unclean(image: ClusterImage) -> ClusterImage:
    decision = decide_elect_leaders(image, UNCLEAN, [TopicPartition("orders", 0)], config=CONFIG)
    return apply(image, decision.records)


def test_new_brokers_have_epochs_of_their_own() -> None:
    image = three()
    assert {each.id: (each.epoch, each.fenced) for each in image.brokers.values()} == {
        1: (1, False),
        2: (2, False),
        3: (3, False),
    }
    assert image.brokers[2].incarnation == b"2first"


def test_what_a_broker_led_the_next_replica_in_sync_leads() -> None:
    image = three((1, 2, 3), (2, 3, 1), (3, 1, 2))
    after = follow(image, living(1), living(2))
    assert after.brokers[3].fenced
    assert [led(after, index) for index in range(3)] == [(1, (1, 2), ()), (2, (2, 1), ()), (1, (1, 2), ())]
    assert [state(after, index).leader_epoch for index in range(3)] == [0, 0, 1]
    assert [state(after, index).partition_epoch for index in range(3)] == [1, 1, 1]


def test_a_lost_broker_is_one_record_for_each_topic() -> None:
    image = three(*[(1, 2, 3)] * 100)
    records = decide_follow_registrations(image, [living(1), living(2)], controller_id=1, config=CONFIG).records
    assert [type(each) for each in records] == [BrokerRegistered, PartitionsChanged]
    assert len(records[1].partitions) == 100


def test_below_min_insync_replicas_those_that_leave_stay_eligible() -> None:
    image = three(min_isr=2)
    image = follow(image, living(2), living(3))
    assert led(image) == (2, (2, 3), ()), "two are enough"
    image = follow(image, living(3))
    assert led(image) == (3, (3,), (2,))
    image = follow(image)
    assert led(image) == (NO_LEADER, (), (2, 3))
    assert state(image).last_known_elr == (3,)
    image = follow(image, living(1, "again"))
    assert led(image) == (NO_LEADER, (), (2, 3)), "it lacks what was committed without it"
    image = follow(image, living(1, "again"), living(2, "again"))
    assert led(image) == (2, (2,), (3,))
    assert state(image).leader_recovery_state == 0


def test_who_lost_records_is_eligible_for_nothing_and_the_last_leader_leads_if_nobody_is() -> None:
    image = follow(three(min_isr=2), living(1), living(2))
    image = follow(follow(image, living(1)), living(2, "anew"))
    assert led(image) == (2, (2,), (1,)), "its logs are whole"
    image = follow(image)
    image = follow(image, living(1, "anew", whole=False))
    assert led(image) == (NO_LEADER, (), (2,))
    image = follow(image, living(1, "anew", whole=False), living(2, "third", whole=False))
    assert led(image) == (2, (2,), ()), "nobody is known to have everything, and it has the most"
    assert state(image).leader_recovery_state == RECOVERING


@pytest.mark.parametrize("tells_what_is_kept", [False, True])
def test_who_lost_its_disk_leads_nothing_that_others_have(tells_what_is_kept: bool) -> None:
    empty = living(3, "empty", lost=True)
    if tells_what_is_kept:
        empty = replace(empty, lost={}, kept={})
    image = follow(follow(three((3, 1, 2)), living(3)))
    assert led(image) == (NO_LEADER, (), (3,))
    image = follow(image, empty)
    assert led(image) == (NO_LEADER, (), ())
    assert state(image).last_known_elr == (3,), "it led last, and has nothing of it"
    image = follow(image, empty, living(1, "again"))
    assert led(image) == (NO_LEADER, (), ())
    image = follow(image, living(3, "once more"), living(1, "again"))
    assert led(image) == (NO_LEADER, (), ()), "another start has not brought anything back"

    elected = elect_unclean(image)
    assert led(elected) == (1, (1,), ()), "the first replica is empty"
    assert state(elected).lost == (3,)
    found = state(elected)
    members = (InSync(1, elected.brokers[1].epoch), InSync(3, elected.brokers[3].epoch))
    wanted = WantedIsr(topic_id(1), 0, found.leader_epoch, found.partition_epoch, members, RECOVERED)
    altered = decide_alter_partition(elected, 1, elected.brokers[1].epoch, [wanted], config=CONFIG)
    joined = apply(elected, altered.records)
    assert (state(joined).isr, state(joined).lost) == ((1, 3), ()), "it has fetched what it lacked"


def test_what_a_broker_kept_it_did_not_lose() -> None:
    image = follow(follow(three((3, 1, 2), (3, 1, 2), (1, 2)), living(3)))
    image = follow(image, replace(living(3, "again"), kept={topic_id(1): (1,)}))
    assert [state(image, index).lost for index in range(3)] == [(3,), (), ()]
    assert [led(image, index)[0] for index in range(2)] == [NO_LEADER, 3]


@pytest.mark.parametrize("is_allowed", [False, True])
def test_no_unclean_election_empties_what_a_broker_that_is_down_still_has(is_allowed: bool) -> None:
    image = follow(three((2, 3), min_isr=2, unclean=is_allowed))
    image = follow(image, living(3, "empty", lost=True))
    image = elect_unclean(image)
    assert led(image) == (NO_LEADER, (), (2,)), "broker 2 has all of it, and may come back"
    assert led(follow(image, living(2, "again"), living(3, "empty"))) == (2, (2,), ())

    gone = apply(image, decide_unregister_broker(image, 2, config=CONFIG).records)
    assert led(elect_unclean(gone)) == (3, (3,), ()), "nobody has it"


def test_an_empty_leader_is_better_than_none_if_that_is_asked_for() -> None:
    image = follow(follow(three((3,)), living(1)), living(1), living(3, "empty", lost=True))
    assert led(image) == (NO_LEADER, (), ())
    elected = elect_unclean(image)
    assert led(elected) == (3, (3,), ())
    assert state(elected).lost == ()


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_failed_directory_stays_offline_until_its_broker_is_started_again(goes_on: bool) -> None:
    """A process that lost its session comes back with the log directories that failed before."""
    image = follow(three((2, 3), unclean=True), living(1), living(2))
    failed = [ReplicaInDirectory(LOST, topic_id(1), 0)]
    epoch = image.brokers[2].epoch
    image = apply(image, decide_assign_replicas_to_dirs(image, 2, epoch, failed, config=CONFIG).records)
    assert (led(image), state(image).offline) == ((NO_LEADER, (), (2,)), (2,))
    image = follow(image, living(1), replace(living(2, "second"), goes_on=goes_on))
    assert not image.brokers[2].fenced
    assert (state(image).leader, state(image).offline) == ((NO_LEADER, (2,)) if goes_on else (2, ()))
    image = follow(image, living(1), replace(living(2, "second"), goes_on=goes_on), living(3, "second"))
    assert state(image).leader == (3 if goes_on else 2)


def test_an_unclean_leader_is_a_matter_of_configuration() -> None:
    for unclean, expected in ((False, (NO_LEADER, (), (3,))), (True, (1, (1,), ()))):
        image = follow(three(unclean=unclean), living(3))
        image = follow(image)
        assert led(image) == (NO_LEADER, (), (3,))
        image = follow(image, living(1, "again"))
        assert led(image) == expected
        assert state(image).leader_recovery_state == (RECOVERING if unclean else 0)


def test_a_broker_that_starts_anew_leads_nothing_of_what_it_led_before() -> None:
    image = three((1, 2, 3), (1,))
    after = follow(image, living(1, "again"), living(2), living(3))
    assert (after.brokers[1].epoch, after.brokers[1].fenced) == (4, False)
    assert led(after) == (2, (2, 3), ())
    assert led(after, 1) == (1, (1,), ()), "nobody else has it, and it has it all"
    assert state(after, 1).leader_epoch == 2, "it may go on differently from what was read of it before"


def test_a_controlled_shutdown_moves_leaders_and_does_not_fence() -> None:
    image = three((1, 2, 3), (3, 1), (1,))
    after = follow(image, living(1, stops=True), living(2), living(3))
    broker = after.brokers[1]
    assert (broker.fenced, broker.in_controlled_shutdown, broker.epoch) == (False, True, 1)
    assert [led(after, index) for index in range(3)] == [(2, (2, 3), ()), (3, (3,), ()), (NO_LEADER, (), (1,))]
    gone = follow(after, living(2), living(3))
    assert gone.brokers[1].fenced
    back = follow(gone, living(1, "again"), living(2), living(3))
    assert (back.brokers[1].is_active, led(back, 2)) == (True, (1, (1,), ()))


def test_a_fenced_process_stays_so_until_it_registers_anew() -> None:
    image = three()
    fenced = decide_fence_broker(image, 1, broker_epoch=1)
    assert fenced.reply
    image = apply(image, fenced.records)
    image = apply(image, decide_settle(image, ["orders"], config=CONFIG).records)
    assert led(image) == (2, (2, 3), ())
    assert not decide_fence_broker(image, 1, broker_epoch=1).reply
    image = follow(image, living(1), living(2), living(3))
    assert image.brokers[1].fenced, "its registration is still there"
    image = follow(image, living(1, "again"), living(2), living(3))
    assert image.brokers[1].is_active
    assert not decide_fence_broker(image, 1, broker_epoch=1).reply, "that was the process before"


def test_what_a_broker_says_of_itself_is_followed() -> None:
    image = three()
    moved = replace(living(2), rack="r2", directories={"a": "/data"})
    after = follow(image, living(1), moved, living(3))
    assert (after.brokers[2].rack, after.brokers[2].epoch, after.brokers[2].directories) == ("r2", 2, {"a": "/data"})
    assert after.topics is image.topics


def test_a_broker_alone_is_left_alone_until_another_comes() -> None:
    image = apply(ClusterImage(), [BrokerRegistered(replace(three().brokers[1], incarnation=b""))])
    image = apply(image, [TopicCreated(TopicImage("orders", topic_id(1), (partition(1),)))])
    for registrations in ([], [living(1)], [living(1, stops=True)]):
        assert follow(image, *registrations) is image or follow(image, *registrations) == image
    joined = follow(image, living(1), living(2))
    assert [(each.id, each.epoch, each.incarnation) for each in joined.brokers.values()] == [
        (1, 1, b"1first"),
        (2, 2, b"2first"),
    ]
    assert joined.topics is image.topics, "it goes on leading"


def test_a_broker_that_is_unregistered_is_nowhere_in_sync_and_its_epoch_is_not_given_again() -> None:
    image = follow(three((1, 2, 3), (3, 2)), living(1), living(2))
    decision = decide_unregister_broker(image, 3, config=CONFIG)
    assert decision.reply is None
    after = apply(image, decision.records)
    assert after.brokers.keys() == {1, 2}
    assert follow(after, living(1), living(2), living(3, "again")).brokers[3].epoch == 4
    running = decide_unregister_broker(after, 1, config=CONFIG).reply
    message = "Broker ID 1 is running; stop the broker before it is unregistered"
    assert running == Refusal(ErrorCode.INVALID_REQUEST, message)
    missing = decide_unregister_broker(after, 3, config=CONFIG).reply
    assert missing == Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, "Broker ID 3 is not currently registered")


def test_many_partitions_are_settled_a_limited_number_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership, "CHANGED_MAX", 10)
    image = three(*[(1, 2, 3)] * 25)
    image = apply(image, decide_fence_broker(image, 1, broker_epoch=1).records)
    cursor: Cursor | None = Cursor()
    changed = []
    while cursor is not None:
        decision = decide_settle(image, ["gone", "orders"], config=CONFIG, start=cursor)
        changed.append([len(each.partitions) for each in decision.records])
        image, cursor = apply(image, decision.records), decision.reply
    assert changed == [[10], [10], [5]]
    assert {led(image, index) for index in range(25)} == {(2, (2, 3), ())}


def test_a_process_that_still_opens_its_logs_is_no_broker(caplog: pytest.LogCaptureFixture) -> None:
    said = encode_registration(living(2))
    found = serving([Registration(1, b""), said, Registration(3, b"\xc1")])
    assert found == [living(2)]
    assert "registration of broker 3 can't be read" in caplog.text
