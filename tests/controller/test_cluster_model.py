"""Brokers that fail, return and move replicas in any order: nobody leads without all that was committed.

Each replica is a number, how many records it has, and a partition has a number of committed ones: those that all
replicas in sync had while there were `min.insync.replicas` of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from moldau.controller.image import RECOVERING, ClusterImage, PartitionImage
from moldau.controller.machine import apply, snapshot_records
from moldau.controller.members.failed_directories import (
    LOST,
    UNASSIGNED,
    ReplicaInDirectory,
    decide_assign_replicas_to_dirs,
)
from moldau.controller.members.membership import (
    Cursor,
    decide_fence_broker,
    decide_fence_missing,
    decide_follow_registrations,
    decide_restore,
    decide_settle,
    decide_take_in,
    decide_unregister_broker,
    returning,
)
from moldau.controller.members.registration import BrokerRegistration
from moldau.controller.partitions.elections import decide_balance_leaders, decide_elect_leaders, imbalanced
from moldau.controller.partitions.isr_changes import InSync, WantedIsr, decide_alter_partition
from moldau.controller.partitions.leaders import PREFERRED, UNCLEAN
from moldau.controller.partitions.reassignment import WantedReplicas, decide_reassign
from moldau.controller.records import ClusterCreated, FeaturesFinalized, Record, decode_records, encode_records
from moldau.controller.settings.features import ELIGIBLE_LEADER_REPLICAS_VERSION
from moldau.controller.topics import NewTopic, decide_create_topics
from moldau.core.config.broker import BrokerConfig
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.ids import NO_LEADER, TopicPartition
from tests.controller.clusters import ENDPOINTS, counting_ids

BROKERS = (1, 2, 3, 4)
CONTROLLER = 9  # no broker of the model, so that its own registration is no special case
CONFIG = BrokerConfig.of({"node.id": "9"})

brokers = st.sampled_from(BROKERS)
numbers = st.integers(0, 1_000)


class ClusterModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.image = ClusterImage()
        self.before = self.image
        self.living: dict[int, BrokerRegistration] = {}
        self.starts = 0
        self.has: dict[tuple[TopicPartition, int], int] = {}
        self.committed: dict[TopicPartition, int] = {}
        self.new_id = counting_ids()
        self.has_elr = True
        self.written: list[Record] = []

    @initialize(
        has_elr=st.booleans(), shapes=st.lists(st.tuples(numbers, numbers, st.booleans()), min_size=1, max_size=3)
    )
    def create(self, has_elr: bool, shapes: list[tuple[int, int, bool]]) -> None:
        self.has_elr = has_elr
        self.take([ClusterCreated("c"), FeaturesFinalized(1, {ELIGIBLE_LEADER_REPLICAS_VERSION: int(has_elr)})])
        for broker in BROKERS:
            self.start_process(broker, whole=True)
        self.follow()
        for number, (factor, min_isr, unclean) in enumerate(shapes):
            configs = [
                ("min.insync.replicas", str(1 + min_isr % 3)),
                ("unclean.leader.election.enable", str(unclean).lower()),
            ]
            new = NewTopic(f"t{number}", 2, 1 + factor % 3, configs=configs)
            self.decide(partial(decide_create_topics, topics=[new], config=CONFIG, new_id=self.new_id))

    def decide(self, decide: Callable[[ClusterImage], Decision[Any]]) -> Any:
        decision = decide(self.image)
        self.take(decision.records)
        return decision.reply

    def take(self, records: Sequence[Record]) -> None:
        """What a log keeps of the records, and what that is for the data."""
        old = self.image
        self.image = apply(old, decode_records(encode_records(records)))
        self.written += records
        for partition, state in self.partitions():
            before = _state(old, partition)
            if before is None:
                self.committed[partition] = 0
            elif state is not before:
                self.changed(partition, before, state)

    def changed(self, partition: TopicPartition, before: PartitionImage, after: PartitionImage) -> None:
        assert after.leader_epoch >= before.leader_epoch
        assert after.partition_epoch > before.partition_epoch
        if after.leader != before.leader:
            assert after.leader_epoch > before.leader_epoch
        for gone in set(before.replicas) - set(after.replicas):
            self.has.pop((partition, gone), None)
        if after.leader in (NO_LEADER, before.leader):
            return
        if after.leader not in self.living:  # it died unseen and serves nobody: its next process has to be elected anew
            return
        has = self.has.get((partition, after.leader), 0)
        if after.leader_recovery_state == RECOVERING and after.isr == (after.leader,):
            self.committed[partition] = min(has, self.committed[partition])
        assert has >= self.committed[partition], f"{partition}: {before} -> {after}"

    def partitions(self) -> list[tuple[TopicPartition, PartitionImage]]:
        return [
            (TopicPartition(topic.name, index), state)
            for topic in self.image.topics.values()
            for index, state in enumerate(topic.partitions)
        ]

    def any_partition(self, number: int) -> tuple[TopicPartition, PartitionImage]:
        found = self.partitions()
        return found[number % len(found)]

    def min_isr(self, partition: TopicPartition) -> int:
        topic = self.image.topics[partition.topic]
        return min(int(topic.configs["min.insync.replicas"]), len(topic.partitions[0].replicas))

    def start_process(self, broker: int, *, whole: bool) -> None:
        self.starts += 1
        incarnation = self.starts.to_bytes(16, "big")
        self.living[broker] = BrokerRegistration(broker, incarnation, ENDPOINTS, has_whole_logs=whole)

    def follow(self) -> None:
        self.decide(
            lambda image: decide_follow_registrations(
                image, list(self.living.values()), controller_id=CONTROLLER, config=CONFIG
            )
        )

    @rule(broker=brokers, whole=st.booleans(), seen=st.booleans())
    def stop(self, broker: int, whole: bool, seen: bool) -> None:
        """A broker is killed, perhaps with its disk, and perhaps nobody looks before it is back."""
        self.living.pop(broker, None)
        if not whole and self.has_elr:  # without, a broker that lost its disk leads all the same, as in Kafka
            for partition, _ in self.partitions():
                self.has.pop((partition, broker), None)
        if seen:
            self.follow()

    @rule(broker=brokers)
    def start(self, broker: int) -> None:
        whole = all(
            (partition, broker) in self.has or self.committed[partition] == 0
            for partition, state in self.partitions()
            if broker in (*state.isr, *state.elr)
        )
        self.start_process(broker, whole=whole)
        self.follow()

    @rule(broker=brokers, steps=st.integers(0, 4))
    def replace_controller_half_way(self, broker: int, steps: int) -> None:
        """Only some of the steps are made that follow from a broker's end; who is elected then makes all of them."""
        self.living.pop(broker, None)
        living = list(self.living.values())
        names = list(self.image.topics)
        works: list[Callable[[ClusterImage], Decision[Any]]] = [
            lambda image: decide_fence_missing(image, living, controller_id=CONTROLLER),
            lambda image: decide_settle(image, names[:1], config=CONFIG),
            lambda image: decide_restore(
                image, names, returning(image, living, controller_id=CONTROLLER), config=CONFIG
            ),
            lambda image: decide_take_in(image, [], controller_id=CONTROLLER),
        ]
        for work in works[:steps]:
            self.decide(work)
        cursor: Cursor | None = Cursor()
        while cursor is not None:
            cursor = self.decide(partial(decide_settle, names=names, config=CONFIG, start=cursor))
        self.follow()

    @rule(broker=brokers)
    def shut_down(self, broker: int) -> None:
        if broker in self.living:
            self.living[broker] = replace(self.living[broker], wants_shutdown=True)
            self.follow()

    @rule(broker=brokers)
    def fence_on_evidence(self, broker: int) -> None:
        known = self.image.brokers.get(broker)
        if known is not None:
            self.living.pop(broker, None)
            self.decide(lambda image: decide_fence_broker(image, broker, broker_epoch=known.epoch))
            self.decide(lambda image: decide_settle(image, list(image.topics), config=CONFIG))

    @rule(broker=brokers)
    def unregister(self, broker: int) -> None:
        known = self.image.brokers.get(broker)
        refusal = self.decide(lambda image: decide_unregister_broker(image, broker, config=CONFIG))
        assert (refusal is None) == (known is not None and known.fenced)

    @rule(number=numbers)
    def produce(self, number: int) -> None:
        partition, state = self.any_partition(number)
        if state.leader == NO_LEADER or state.leader not in self.living:
            return
        end = self.has.get((partition, state.leader), 0) + 1
        self.has[partition, state.leader] = end
        if len(state.isr) >= self.min_isr(partition) and all(each in self.living for each in state.isr):
            for replica in state.isr:
                self.has[partition, replica] = end
            self.committed[partition] = end

    @rule(number=numbers, replica=brokers, is_stale=st.booleans())
    def change_isr(self, number: int, replica: int, is_stale: bool) -> None:
        """The leader takes a replica in that has all that it has, or puts one out."""
        partition, state = self.any_partition(number)
        leader = self.image.brokers.get(state.leader)
        if leader is None or replica == state.leader or replica not in state.replicas:
            return
        known = self.image.brokers.get(replica)
        isr = [each for each in state.isr if each != replica]
        epochs = {each: self.image.brokers[each].epoch for each in isr}
        if replica not in state.isr:
            isr.append(replica)
            epochs[replica] = -2 if known is None or is_stale else known.epoch
        wanted = WantedIsr(
            self.image.topics[partition.topic].id,
            partition.partition,
            state.leader_epoch,
            state.partition_epoch,
            tuple(InSync(each, epochs[each]) for each in isr),
        )
        if replica in isr:
            self.has[partition, replica] = self.has.get((partition, state.leader), 0)
        replies = self.decide(
            lambda image: decide_alter_partition(image, state.leader, leader.epoch, [wanted], config=CONFIG)
        )
        may_join = known is not None and known.is_active and not is_stale and replica not in state.offline
        if replica in isr and not may_join:
            assert replies[0].error is ErrorCode.INELIGIBLE_REPLICA
        else:
            assert replies[0].error in (ErrorCode.NONE, ErrorCode.NEW_LEADER_ELECTED)

    @rule(number=numbers, replicas=st.lists(brokers, min_size=1, max_size=3, unique=True))
    def reassign(self, number: int, replicas: list[int]) -> None:
        partition, _ = self.any_partition(number)
        wanted = WantedReplicas(*partition, tuple(replicas))
        self.decide(lambda image: decide_reassign(image, [wanted], config=CONFIG))

    @rule(number=numbers)
    def cancel(self, number: int) -> None:
        partition, _ = self.any_partition(number)
        self.decide(lambda image: decide_reassign(image, [WantedReplicas(*partition, None)], config=CONFIG))

    @rule(number=numbers, kind=st.sampled_from([PREFERRED, UNCLEAN]))
    def elect(self, number: int, kind: int) -> None:
        partition, _ = self.any_partition(number)
        self.decide(lambda image: decide_elect_leaders(image, kind, [partition], config=CONFIG))

    @rule()
    def balance(self) -> None:
        found = [each for topic in self.image.topics.values() for each in imbalanced(topic)]
        self.decide(lambda image: decide_balance_leaders(image, found, config=CONFIG))

    @rule(number=numbers, broker=brokers, is_lost=st.booleans())
    def lose_directory(self, number: int, broker: int, is_lost: bool) -> None:
        partition, _ = self.any_partition(number)
        known = self.image.brokers.get(broker)
        if known is None:
            return
        topic_id = self.image.topics[partition.topic].id
        replica = ReplicaInDirectory(LOST if is_lost else UNASSIGNED, topic_id, partition.partition)
        self.decide(lambda image: decide_assign_replicas_to_dirs(image, broker, known.epoch, [replica], config=CONFIG))

    @invariant()
    def brokers_have_growing_epochs(self) -> None:
        for broker_id, broker in self.image.brokers.items():
            known = self.before.brokers.get(broker_id)
            if known is not None:
                assert broker.epoch >= known.epoch
                assert broker.incarnation == known.incarnation or broker.epoch > known.epoch
        assert self.image.broker_epoch_max >= max((each.epoch for each in self.image.brokers.values()), default=0)
        self.before = self.image

    @invariant()
    def partitions_are_sound(self) -> None:
        active = {broker.id for broker in self.image.active_brokers() if broker.is_active}
        for partition, state in self.partitions():
            for ids in (state.replicas, state.isr, state.elr, state.adding_replicas, state.removing_replicas):
                assert len(set(ids)) == len(ids), (partition, state)
            replicas = set(state.replicas)
            assert replicas >= {*state.isr, *state.elr, *state.adding_replicas, *state.removing_replicas}, state
            assert not set(state.isr) & set(state.elr), state
            assert not set(state.adding_replicas) & set(state.removing_replicas), state
            if state.leader != NO_LEADER:
                assert state.leader in state.isr, state
                assert state.leader in active, state
                assert state.leader not in state.offline, state
            if self.has_elr:
                assert active >= set(state.isr), state
                assert state.isr or state.elr or state.last_known_elr, state
            else:
                assert state.isr, state
                assert not state.elr, state

    def teardown(self) -> None:
        assert apply(ClusterImage(), list(snapshot_records(self.image))) == self.image
        assert apply(ClusterImage(), self.written) == self.image


def _state(image: ClusterImage, partition: TopicPartition) -> PartitionImage | None:
    topic = image.topics.get(partition.topic)
    return None if topic is None else topic.partitions[partition.partition]


TestCluster = ClusterModel.TestCase
TestCluster.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
