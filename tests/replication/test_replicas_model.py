"""Random histories of a partition with many replicas: whatever happens, what is committed is on every replica that the
controller may elect."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from moldau.core.errors import ErrorCode
from moldau.core.ids import Offset
from moldau.replication.assignment import Assignment, IsrChange, ReplicationTerms
from moldau.replication.replicas import Replicas

LEADER = 0
LAG_MS = 1_000
REFUSALS = st.sampled_from([ErrorCode.INELIGIBLE_REPLICA, ErrorCode.NOT_CONTROLLER, ErrorCode.INVALID_UPDATE_VERSION])


class Cluster(RuleBasedStateMachine):
    """One leader with its followers' real logs' ends, and a controller that answers late, or not at all."""

    @initialize(count=st.integers(2, 5), min_isr=st.integers(1, 5), is_full=st.booleans())
    def start(self, count: int, min_isr: int, is_full: bool) -> None:
        self.members = tuple(range(count))
        self.min_isr = min_isr
        self.now_ms = 10_000
        self.ends = dict.fromkeys(self.members, 0)  # what each replica really has
        self.controller = Assignment(self.members, frozenset(self.members if is_full else {LEADER}), 0)
        self.epoch = 0
        self.high_watermark = 0
        self.asked: IsrChange | None = None
        self.answers: list[tuple[IsrChange, Assignment]] = []
        self.fenced: set[int] = set()
        self.replicas = Replicas(LEADER, ReplicationTerms(LAG_MS, lambda broker_id, _: broker_id not in self.fenced))
        self.publish()

    def publish(self) -> None:
        self.replicas.assign(
            self.controller,
            leader_epoch=self.epoch,
            end_offset=Offset(self.ends[LEADER]),
            high_watermark=Offset(self.high_watermark),
            now_ms=self.now_ms,
        )
        self.advance()

    def advance(self) -> None:
        found = self.replicas.high_watermark(
            Offset(self.ends[LEADER]), min_insync_replicas=self.min_isr, now_ms=self.now_ms
        )
        if found is not None:
            self.high_watermark = max(self.high_watermark, found)

    def follower(self, place: int) -> int:
        return self.members[1 + place % (len(self.members) - 1)]

    @rule(count=st.integers(1, 3))
    def append(self, count: int) -> None:
        self.ends[LEADER] += count
        self.advance()

    @rule(place=st.integers(0, 9), count=st.integers(0, 5))
    def fetch(self, place: int, count: int) -> None:
        """A follower wrote some of what it was sent, and asks for the next."""
        broker_id = self.follower(place)
        self.ends[broker_id] = min(self.ends[LEADER], self.ends[broker_id] + count)
        self.replicas.followers[broker_id].fetched(
            Offset(self.ends[broker_id]),
            log_start_offset=Offset(0),
            leader_end_offset=Offset(self.ends[LEADER]),
            broker_epoch=1,
            now_ms=self.now_ms,
        )
        self.ask(self.replicas.decide_expand(broker_id, high_watermark=Offset(self.high_watermark)))
        self.advance()

    @rule()
    def shrink(self) -> None:
        self.ask(self.replicas.decide_shrink(Offset(self.ends[LEADER]), now_ms=self.now_ms))

    def ask(self, change: IsrChange | None) -> None:
        if change is not None:
            self.replicas.ask(change)
            self.asked = change

    @rule(ms=st.integers(1, 2 * LAG_MS))
    def wait(self, ms: int) -> None:
        self.now_ms += ms

    @rule(place=st.integers(0, 9))
    def fence(self, place: int) -> None:
        self.fenced ^= {self.follower(place)}

    @precondition(lambda self: self.asked is not None)
    @rule(is_heard=st.booleans(), refusal=REFUSALS)
    def controller_answers(self, is_heard: bool, refusal: ErrorCode) -> None:
        change, self.asked = self.asked, None
        assert change is not None
        members = {each.broker_id for each in change.isr}
        if change.partition_epoch != self.controller.partition_epoch:
            self.replicas.refused(change, ErrorCode.INVALID_UPDATE_VERSION)
        elif members & self.fenced:
            self.replicas.refused(change, ErrorCode.INELIGIBLE_REPLICA)
        elif refusal is ErrorCode.NOT_CONTROLLER and self.replicas.refused(change, refusal):
            self.asked = change
        else:
            self.controller = Assignment(self.members, frozenset(members), self.controller.partition_epoch + 1)
            self.answers.append((change, self.controller))
            if is_heard:
                self.hear()

    @precondition(lambda self: self.answers)
    @rule()
    def hear(self) -> None:
        """The answer to the oldest change that was made; an image may have come before it."""
        change, assignment = self.answers.pop(0)
        self.replicas.agreed(change, assignment)
        self.advance()

    @rule(place=st.integers(0, 9))
    def controller_removes(self, place: int) -> None:
        """A broker was lost: the controller takes it out of the ISR by itself."""
        left = self.controller.isr - {self.follower(place)}
        if left != self.controller.isr:
            self.controller = Assignment(self.members, left, self.controller.partition_epoch + 1)

    @precondition(lambda self: self.controller.partition_epoch > self.replicas.partition_epoch)
    @rule(is_elected_again=st.booleans())
    def image_arrives(self, is_elected_again: bool) -> None:
        self.epoch += is_elected_again
        self.publish()

    @invariant()
    def what_is_committed_is_on_every_replica_that_may_be_elected(self) -> None:
        if hasattr(self, "controller"):
            for broker_id in self.controller.isr:
                assert self.ends[broker_id] >= self.high_watermark, (broker_id, self.ends, self.high_watermark)

    @invariant()
    def the_maximal_isr_holds_every_isr_that_the_controller_may_have(self) -> None:
        if hasattr(self, "controller"):
            assert self.controller.isr <= self.replicas.maximal_isr


TestCluster = Cluster.TestCase
TestCluster.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
