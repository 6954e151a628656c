"""Any history of classic and consumer members in one group, upgraded and downgraded on the way: one owner at a time."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from moldau.coordinator.journal import StoredRecord
from moldau.core.decision import Delayed
from moldau.core.errors import ErrorCode
from moldau.groups.classic.consumer_protocol import read_subscription
from moldau.groups.classic.members import Protocol
from moldau.groups.limits import ConsumerGroupConfig
from moldau.wire.messages.join_group import JoinGroupResponse
from tests.groups.consumer.worlds import GROUP, ConsumerWorld, beat, joining, topic_id
from tests.groups.migration.worlds import TOPIC, MixedWorld, assignment, partitions_of, subscription

CONFIG = ConsumerGroupConfig(assignment_interval_ms=700)
PARTITIONS = frozenset(range(4))


class New:
    """A client of the consumer protocol: it gives up what it lost before it takes what it got."""

    def __init__(self) -> None:
        self.epoch = 0
        self.owned: frozenset[int] = frozenset()


class Old:
    """A classic client: an eager one has nothing while it joins, a cooperative one keeps what it has."""

    def __init__(self, *, is_cooperative: bool) -> None:
        self.is_cooperative = is_cooperative
        self.generation = -1
        self.owned: frozenset[int] = frozenset()
        self.step = "join"
        """What it does next: join, wait, sync, await the leader, or beat."""
        self.joined: JoinGroupResponse | None = None


class Histories(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.mixed = MixedWorld(ConsumerWorld({TOPIC: len(PARTITIONS)}, CONFIG))
        self.news: dict[str, New] = {}
        self.olds: dict[str, Old] = {}
        self.count = 0

    @property
    def world(self) -> ConsumerWorld:
        return self.mixed.world

    def clients(self) -> list[New | Old]:
        return [*self.news.values(), *self.olds.values()]

    def new_id(self) -> str:
        self.count += 1
        return f"m{self.count}"

    @precondition(lambda self: len(self.news) < 3)
    @rule()
    def a_new_client_comes(self) -> None:
        member_id = self.new_id()
        self.news[member_id] = New()
        self.live_new(member_id)

    @precondition(lambda self: len(self.olds) < 3)
    @rule(is_cooperative=st.booleans())
    def an_old_client_comes(self, is_cooperative: bool) -> None:
        member_id = self.new_id()
        self.olds[member_id] = Old(is_cooperative=is_cooperative)
        self.live_old(member_id)

    @precondition(lambda self: self.news)
    @rule(data=st.data())
    def a_new_client_lives(self, data: Any) -> None:
        self.live_new(data.draw(st.sampled_from(sorted(self.news))))

    @precondition(lambda self: self.olds)
    @rule(data=st.data())
    def an_old_client_lives(self, data: Any) -> None:
        self.live_old(data.draw(st.sampled_from(sorted(self.olds))))

    def live_new(self, member_id: str) -> None:
        client = self.news[member_id]
        owned = {topic_id(TOPIC): client.owned} if client.owned else {}
        request = joining(member_id, TOPIC) if client.epoch == 0 else beat(member_id, client.epoch, owned=owned)
        reply = self.world.send(request)
        if reply.error_code != ErrorCode.NONE:
            client.epoch, client.owned = 0, frozenset()
            return
        client.epoch = reply.member_epoch
        if reply.assignment is not None:
            given = frozenset(each for topic in reply.assignment.topic_partitions for each in topic.partitions)
            client.owned = given

    def live_old(self, member_id: str) -> None:
        client = self.olds[member_id]
        steps = {"join": self.join_old, "wait": self.hear_join, "sync": self.sync_old, "await": self.hear_sync}
        if client.step in steps:
            steps[client.step](member_id, client)
            return
        error = self.mixed.heartbeat(member_id, client.generation)
        if error is not ErrorCode.NONE:
            self.must_join(client, error)

    def must_join(self, client: Old, error: int) -> None:
        """Who is out of the group has lost what it had; who is in it keeps that, if it is cooperative."""
        if error != ErrorCode.REBALANCE_IN_PROGRESS:
            client.owned = frozenset()
        client.step = "join"

    def join_old(self, member_id: str, client: Old) -> None:
        if not client.is_cooperative:
            client.owned = frozenset()
        protocols = (Protocol("range", subscription(*sorted(client.owned))),)
        # A group without members takes a client that names none; one that did would be told to come without a name.
        group = self.world.shard.consumer_groups.get(GROUP)
        known = client.generation >= 0 or (group is not None and bool(group.members))
        reply = self.mixed.join(member_id if known else "", new_member_id=member_id, protocols=protocols)
        if isinstance(reply, Delayed):
            client.step = "wait"
            return
        self.heard_join(client, reply)

    def hear_join(self, member_id: str, client: Old) -> None:
        reply = self.world.released.pop(("join", GROUP, member_id), None)
        if reply is not None:
            self.heard_join(client, reply)

    def heard_join(self, client: Old, reply: JoinGroupResponse) -> None:
        if reply.error_code != ErrorCode.NONE:
            client.generation = -1 if reply.error_code == ErrorCode.UNKNOWN_MEMBER_ID else client.generation
            self.must_join(client, reply.error_code)
            return
        client.generation, client.joined, client.step = reply.generation_id, reply, "sync"

    def sync_old(self, member_id: str, client: Old) -> None:
        assert client.joined is not None
        leads = client.joined.leader == member_id
        given = self.shared_by_leader(client.joined) if leads else {}
        reply = self.mixed.sync(member_id, client.generation, given)
        if isinstance(reply, Delayed):
            client.step = "await"
            return
        self.heard_sync(client, reply)

    def hear_sync(self, member_id: str, client: Old) -> None:
        reply = self.world.released.pop(("sync", GROUP, member_id), None)
        if reply is not None:
            self.heard_sync(client, reply)

    def heard_sync(self, client: Old, reply: Any) -> None:
        if reply.error_code != ErrorCode.NONE:
            self.must_join(client, reply.error_code)
            return
        given = frozenset(partitions_of(reply.assignment)) if reply.assignment else frozenset()
        # A cooperative client that gives something up joins again at once, so that others may have it.
        client.step = "join" if client.is_cooperative and client.owned - given else "beat"
        client.owned = given

    def shared_by_leader(self, joined: JoinGroupResponse) -> dict[str, bytes]:
        """As a cooperative assignor does it: what another one still has is given to nobody yet."""
        owners = {
            partition: each.member_id
            for each in joined.members
            for topic in read_subscription(bytes(each.metadata)).owned_partitions
            for partition in topic.partitions
        }
        names = sorted(each.member_id for each in joined.members)
        shares: dict[str, list[int]] = {name: [] for name in names}
        for partition in sorted(PARTITIONS):
            wanted = names[partition % len(names)]
            if owners.get(partition, wanted) == wanted:
                shares[wanted].append(partition)
        return {name: assignment(*partitions) for name, partitions in shares.items()}

    @precondition(lambda self: self.news or self.olds)
    @rule(data=st.data(), silently=st.booleans())
    def a_client_goes(self, data: Any, silently: bool) -> None:
        member_id = data.draw(st.sampled_from(sorted([*self.news, *self.olds])))
        if self.news.pop(member_id, None) is not None:
            if not silently:
                self.world.send(beat(member_id, -1))
            return
        del self.olds[member_id]
        if not silently:
            self.mixed.leave(member_id)

    @rule(seconds=st.sampled_from([1, 4, 50]))
    def time_passes(self, seconds: int) -> None:
        """Everybody who can hear is heard in time; who is silent is not there any more."""
        for _ in range(seconds):
            for member_id in sorted(self.news):
                self.live_new(member_id)
            for member_id in sorted(self.olds):
                self.live_old(member_id)
            self.no_partition_has_two_owners()
            self.world.pass_time(1_000)

    @rule()
    def the_coordinator_crashes(self) -> None:
        """Who waited for an answer gets none, and asks again."""
        again = self.world.new_shard()
        for key, value in self.world.logged:
            fact = again.decode(StoredRecord(memoryview(key), None if value is None else memoryview(value)))
            assert fact is not None
            again.apply(fact)
        self.world.shard = again
        self.world.timers.clear()
        self.world.released.clear()
        self.world.do(lambda shard, now_ms: shard.decide_started(now_ms))
        for client in self.olds.values():
            if client.step in ("wait", "await"):
                client.step = "join"

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        owned = [partition for client in self.clients() for partition in client.owned]
        assert len(owned) == len(set(owned))

    @invariant()
    def a_group_is_one_kind_or_the_other(self) -> None:
        shard = self.world.shard
        assert not (set(shard.groups) & set(shard.consumer_groups))

    def teardown(self) -> None:
        """In the end everything is shared by whoever is there."""
        self.time_passes(150)
        if self.clients():
            assert frozenset[int]().union(*(client.owned for client in self.clients())) == PARTITIONS


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
