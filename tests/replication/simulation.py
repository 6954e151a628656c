"""One partition on three brokers, with real logs and a simulated network, controller and clock, from a seed.

Requests, answers and images are late, or lost; brokers are killed and come back with what they had written and an
older note of what was committed; leaders change. Every record that was acknowledged is remembered.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import NO_LEADER, Offset
from moldau.log.partition_log import PartitionLog
from moldau.replication.assignment import Assignment, IsrChange, ReplicationTerms
from moldau.replication.follower import Follower, Outcome, Position
from moldau.replication.partition import LeaderAndEpoch, Partition
from moldau.wire.batch import batches, records
from moldau.wire.messages.fetch import PartitionData
from tests.log.samples import NOW_MS, PARTITION, TOPIC_ID, batch, config, create
from tests.replication.exchanges import Asked, content, replica, serve

BROKERS = (1, 2, 3)
LAG_MS = 1_000
CONFIG = config(min_insync_replicas=2, segment_bytes=900, index_interval_bytes=200)


@dataclass
class State:
    """What the controller decided last."""

    leader: int = BROKERS[0]
    leader_epoch: int = 0
    partition_epoch: int = 0
    isr: frozenset[int] = frozenset(BROKERS)


class Broker:
    def __init__(self, cluster: Cluster, broker_id: int, folder: Path) -> None:
        self.cluster = cluster
        self.id = broker_id
        self.folder = folder
        self.life = 1  # the epoch of its registration
        self.checkpoint = 0
        self.partition: Partition | None = replica(
            folder, broker_id, leader=NO_LEADER, epoch=-1, log=create(folder / str(broker_id), CONFIG)
        )
        self.follower: Follower | None = None
        self.waits: list[tuple[int, bytes]] = []  # sent with acks=all, not acknowledged yet

    @property
    def log(self) -> PartitionLog:
        assert self.partition is not None
        return self.partition.log

    def kill(self) -> None:
        self.partition = self.follower = None
        self.waits.clear()

    def restart(self) -> None:
        self.life += 1
        log = PartitionLog.open(
            self.folder / str(self.id) / str(PARTITION),
            partition=PARTITION,
            topic_id=TOPIC_ID,
            config=CONFIG,
            clean=False,
            recovery_point=0,
            log_start_offset=0,
            now_ms=self.cluster.now_ms,
        )
        self.partition = Partition(
            PARTITION.topic, PARTITION.partition, topic_id=TOPIC_ID, log=log, broker_id=self.id,
            leadership=LeaderAndEpoch(NO_LEADER, -1), high_watermark=self.checkpoint, now_ms=self.cluster.now_ms,
            terms=self.cluster.terms,
        )  # fmt: skip

    def follow_image(self, state: State) -> None:
        partition = self.partition
        if partition is None or state.leader_epoch < partition.leader_epoch:
            return
        before = partition.leadership
        partition.lead(
            LeaderAndEpoch(state.leader, state.leader_epoch),
            Assignment(BROKERS, state.isr, state.partition_epoch),
            now_ms=self.cluster.now_ms,
        )
        if partition.leadership != before:
            self.follower = None
            if state.leader not in (NO_LEADER, self.id):
                self.follower = Follower(partition)
                self.follower.begin(now_ms=self.cluster.now_ms)
        if not partition.is_leader:
            self.waits.clear()

    def acknowledge(self) -> None:
        partition = self.partition
        if partition is None or not partition.is_leader:
            return
        for end, value in [*self.waits]:
            error = partition.acknowledgement(Offset(end))
            if error is None:
                continue
            self.waits.remove((end, value))
            if error is ErrorCode.NONE:
                self.cluster.acknowledged[end - 1] = value


class Cluster:
    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.now_ms = NOW_MS
        self.terms = ReplicationTerms(LAG_MS, self._is_eligible)
        self.state = State()
        self.brokers = {each: Broker(self, each, folder) for each in BROKERS}
        for broker in self.brokers.values():
            broker.partition = replica(folder, broker.id, leader=NO_LEADER, epoch=-1, log=broker.log, terms=self.terms)
        self.acknowledged: dict[int, bytes] = {}
        self.network: list[Callable[[], None]] = []
        self.produced = 0
        self.truncations = self.elections = 0
        self.loss = 0.1
        for broker in self.brokers.values():
            broker.follow_image(self.state)

    def _is_eligible(self, broker_id: int, epoch: int) -> bool:
        broker = self.brokers[broker_id]
        return broker.partition is not None and broker.life == epoch

    def alive(self) -> list[Broker]:
        return [each for each in self.brokers.values() if each.partition is not None]

    def send(self, message: Callable[[], None]) -> None:
        if self.random.random() >= self.loss:
            self.network.append(message)

    def deliver(self) -> None:
        """Connections keep their order, and there are several: one of the oldest messages arrives."""
        if self.network:
            self.network.pop(self.random.randrange(min(4, len(self.network))))()

    def produce(self) -> None:
        for broker in self.alive():
            partition = broker.partition
            if partition is None or not partition.is_leader:
                continue  # an old leader that does not know better is one, too
            self.produced += 1
            value = b"v%d-%s" % (self.produced, b"x" * self.random.randrange(60))
            try:
                partition.check_in_sync()
                appended = partition.append(batch([value], timestamps=[self.now_ms]), now_ms=self.now_ms)
            except ApiError:
                continue
            broker.waits.append((appended.last_offset + 1, value))
            broker.acknowledge()

    def fetch(self) -> None:
        broker = self.random.choice(self.alive() or [self.brokers[1]])
        follower = broker.follower
        if follower is None or not follower.is_current:
            return
        leader_id, position, life = follower.partition.leadership.leader_id, follower.position(), broker.life
        self.send(lambda: self._serve(leader_id, broker, follower, position, life))

    def _serve(self, leader_id: int, broker: Broker, follower: Follower, position: Position, life: int) -> None:
        leader = self.brokers[leader_id]
        if leader.partition is None:
            return
        asked = Asked()
        data = serve(
            leader.partition, broker.id, position, now_ms=self.now_ms, bytes_max=self.random.choice([1, 400, 4_000]),
            broker_epoch=life, asked=asked,
        )  # fmt: skip
        for change in asked.changes:
            self.ask_controller(leader, change)
        leader.acknowledge()
        log = leader.partition.log
        bounds = (log.log_start_offset, log.end_offset)
        self.send(lambda: self._answer(broker, follower, position, data, bounds))

    def _answer(
        self, broker: Broker, follower: Follower, position: Position, data: PartitionData, bounds: tuple[int, int]
    ) -> None:
        if broker.follower is not follower:
            return
        outcome = follower.answered(position, data, now_ms=self.now_ms)
        if outcome is Outcome.OUT_OF_RANGE and position == follower.position():
            outcome = follower.told_range(*bounds, now_ms=self.now_ms)
        self.truncations += outcome is Outcome.TRUNCATED

    def shrink(self) -> None:
        for broker in self.alive():
            change = None if broker.partition is None else broker.partition.shrink_isr(self.now_ms)
            if change is not None:
                self.ask_controller(broker, change)

    def ask_controller(self, broker: Broker, change: IsrChange) -> None:
        partition = broker.partition
        self.network.append(lambda: self._alter(broker, partition, change))

    def _alter(self, broker: Broker, partition: Partition | None, change: IsrChange) -> None:
        """The controller's answer; one that is lost is asked for again."""
        if partition is None or broker.partition is not partition:
            return
        state = self.state
        if change.leader_epoch != state.leader_epoch or state.leader != broker.id:
            error = ErrorCode.FENCED_LEADER_EPOCH
        elif change.partition_epoch != state.partition_epoch:
            error = ErrorCode.INVALID_UPDATE_VERSION
        elif any(not self._may_join(each, epoch, broker) for each, epoch in change.isr):
            error = ErrorCode.INELIGIBLE_REPLICA
        else:
            error = ErrorCode.NONE
            self.state = State(
                state.leader, state.leader_epoch, state.partition_epoch + 1, frozenset(each for each, _ in change.isr)
            )
            self.publish()
        if self.random.random() < self.loss:
            self.ask_controller(broker, change)
        elif error is ErrorCode.NONE:
            agreed = Assignment(BROKERS, self.state.isr, self.state.partition_epoch)
            partition.isr_changed(change, agreed, now_ms=self.now_ms)
            broker.acknowledge()
        elif partition.isr_refused(change, error):
            self.ask_controller(broker, change)

    def _may_join(self, broker_id: int, epoch: int, leader: Broker) -> bool:
        if broker_id == leader.id or (epoch == -1 and broker_id in self.state.isr):
            return True
        return self._is_eligible(broker_id, epoch)

    def publish(self) -> None:
        """Images are never lost, and come in order; a broker may be slow."""
        state = self.state
        for broker in self.brokers.values():
            self.network.append(lambda broker=broker: broker.follow_image(state))  # type: ignore[misc]

    def decide(self, leader: int, isr: frozenset[int]) -> None:
        before = self.state
        is_new = leader != before.leader or isr < before.isr
        self.elections += leader != before.leader
        self.state = State(leader, before.leader_epoch + is_new, before.partition_epoch + 1, isr)
        self.publish()

    def kill(self, broker: Broker) -> None:
        broker.kill()
        self._without(broker)

    def _without(self, broker: Broker) -> None:
        """The controller noticed: the ISR shrinks, but for its last member, and another one leads."""
        left = self.state.isr - {broker.id} or self.state.isr
        leader = self.state.leader
        if leader == broker.id:
            eligible = sorted(each.id for each in self.alive() if each.id in left)
            leader = self.random.choice(eligible) if eligible else NO_LEADER
        if (leader, left) != (self.state.leader, self.state.isr):
            self.decide(leader, left)

    def restart(self, broker: Broker) -> None:
        broker.restart()
        if self.state.leader == NO_LEADER and broker.id in self.state.isr:
            self.decide(broker.id, self.state.isr)
        else:
            state = self.state
            self.network.append(lambda: broker.follow_image(state))

    def move_leader(self) -> None:
        """A preferred election: the old leader hears of it late, and goes on leading until then."""
        eligible = [each.id for each in self.alive() if each.id in self.state.isr and each.id != self.state.leader]
        if eligible:
            self.decide(self.random.choice(eligible), self.state.isr)

    def delete_records(self) -> None:
        for broker in self.alive():
            partition = broker.partition
            if partition is not None and partition.is_leader and broker.id == self.state.leader:
                low = self.random.randrange(partition.high_watermark + 1)
                partition.delete_records(Offset(low // 2), now_ms=self.now_ms)

    def note_checkpoints(self) -> None:
        for broker in self.alive():
            assert broker.partition is not None
            broker.checkpoint = broker.partition.high_watermark

    def step(self) -> None:
        self.now_ms += self.random.randrange(30)
        action = self.random.choices(
            [self.deliver, self.fetch, self.produce, self.shrink, self.note_checkpoints, self.delete_records,
             self.move_leader, self.crash, self.come_back],
            [60, 40, 12, 2, 2, 1, 1, 1, 4],
        )[0]  # fmt: skip
        action()

    def crash(self) -> None:
        self.kill(self.random.choice(self.alive() or [self.brokers[1]]))

    def come_back(self) -> None:
        dead = [each for each in self.brokers.values() if each.partition is None]
        if dead:
            self.restart(self.random.choice(dead))

    def heal(self) -> None:
        """Everybody lives, nothing is lost, and all has time to arrive."""
        self.loss = 0.0
        while any(each.partition is None for each in self.brokers.values()):
            self.come_back()
        for _ in range(400):
            self.now_ms += 5
            while self.network:
                self.deliver()
            self.shrink()
            for _ in BROKERS:
                self.fetch()

    def check(self) -> None:
        leader = self.brokers[self.state.leader]
        assert leader.partition is not None
        assert self.state.isr == frozenset(BROKERS), "all are in sync again"
        high_watermark = leader.partition.high_watermark
        assert high_watermark == leader.log.end_offset
        # A deletion that not all followers heard of before their leader was gone holds for some of them.
        start = max(each.log.log_start_offset for each in self.brokers.values())
        expected = content(leader.partition, high_watermark, start=start)
        for broker in self.brokers.values():
            assert broker.partition is not None
            assert broker.log.end_offset == leader.log.end_offset, broker.id
            assert content(broker.partition, high_watermark, start=start) == expected, f"broker {broker.id} differs"
            assert broker.log.log_start_offset >= leader.log.log_start_offset
        self.check_acknowledged(expected, start)

    def check_acknowledged(self, found: bytes, start_offset: int) -> None:
        view, stored = memoryview(found), {}
        for at, header in batches(view):
            for record in records(view[at : at + header.length_bytes], decompressed_bytes_max=1 << 20):
                stored[record.offset] = bytes(record.value or b"")
        for offset, value in self.acknowledged.items():
            if offset >= start_offset:
                assert stored.get(offset) == value, f"offset {offset} was acknowledged as {value!r}"


def run(folder: Path, seed: int, steps: int) -> Cluster:
    cluster = Cluster(folder, seed)
    for _ in range(steps):
        cluster.step()
    cluster.heal()
    cluster.check()
    return cluster
