"""Any history of members, topics, silences, lost answers and crashes: no partition has two owners, no offset goes."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from moldau.coordinator.journal import StoredRecord
from moldau.core.errors import ErrorCode
from moldau.groups.consumer.group import ConsumerState
from moldau.groups.consumer.members import STATIC_LEAVE_EPOCH
from moldau.groups.limits import ConsumerGroupConfig
from tests.groups.consumer.worlds import GROUP, ConsumerWorld, beat, joining, topic_id

CONFIG = ConsumerGroupConfig(max_size=3, assignment_interval_ms=0)
NAMES = st.sets(st.sampled_from(["orders", "others", "later"]), min_size=1)
REGEXES = st.sampled_from([None, None, "or.*", "o.*", ".*"])
MOSTLY = st.sampled_from([True, True, True, False])
ASSIGNORS = st.sampled_from([None, "uniform", "range"])


class Client:
    """What a client believes. It takes what it is given at once, and gives up in its own time what it no longer is."""

    def __init__(self, instance_id: str | None) -> None:
        self.instance_id = instance_id
        self.epoch = 0
        self.owned: dict[bytes, frozenset[int]] = {}
        self.given: dict[bytes, frozenset[int]] = {}
        """By the last answer."""

    def take(self, given: dict[bytes, frozenset[int]]) -> None:
        none: frozenset[int] = frozenset()
        self.given = given
        self.owned = {topic: self.owned.get(topic, none) | given.get(topic, none) for topic in {**self.owned, **given}}

    def give_up(self) -> None:
        self.owned = self.given


class Histories(RuleBasedStateMachine):
    """Clients that follow the protocol, answers that may not arrive, and a coordinator that may crash."""

    def __init__(self) -> None:
        super().__init__()
        self.world = ConsumerWorld({"orders": 3, "others": 2}, CONFIG)
        self.clients: dict[str, Client] = {}
        self.committed: dict[int, int] = {}
        self.count = 0

    def someone(self, data: Any) -> str:
        return str(data.draw(st.sampled_from(sorted(self.clients))))

    def hear(self, member_id: str, reply: Any, arrives: bool) -> None:
        client = self.clients[member_id]
        if reply.error_code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            if arrives:
                client.owned, client.given, client.epoch = {}, {}, 0
        elif reply.error_code == ErrorCode.NONE and arrives:
            client.epoch = reply.member_epoch
            if reply.assignment is not None:
                client.take({each.topic_id: frozenset(each.partitions) for each in reply.assignment.topic_partitions})

    @rule(
        names=NAMES,
        regex=REGEXES,
        assignor=ASSIGNORS,
        instance=st.sampled_from([None, None, "i"]),
        arrives=MOSTLY,
    )
    def a_client_comes(self, names: Any, regex: Any, assignor: Any, instance: Any, arrives: bool) -> None:
        self.count += 1
        member_id = f"m{self.count}"
        reply = self.world.send(joining(member_id, *names, regex=regex, assignor=assignor, instance_id=instance))
        if reply.error_code == ErrorCode.NONE:
            self.clients[member_id] = Client(instance)
            self.hear(member_id, reply, arrives)

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), says=MOSTLY, arrives=MOSTLY)
    def a_client_lives(self, data: Any, says: bool, arrives: bool) -> None:
        self.live(self.someone(data), says=says, arrives=arrives)

    @precondition(lambda self: self.clients)
    @rule(says=MOSTLY)
    def all_clients_live(self, says: bool) -> None:
        for member_id in self.clients:
            self.live(member_id, says=says, arrives=True)

    def live(self, member_id: str, *, says: bool, arrives: bool) -> None:
        client = self.clients[member_id]
        if client.epoch == 0:
            request = joining(member_id, "orders", instance_id=client.instance_id)
        else:
            owned = client.owned if says else None
            request = beat(member_id, client.epoch, owned=owned, instance_id=client.instance_id)
        self.hear(member_id, self.world.send(request), arrives)

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def a_client_gives_up_what_it_must(self, data: Any) -> None:
        self.clients[self.someone(data)].give_up()

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), names=NAMES, regex=REGEXES)
    def a_client_changes_its_mind(self, data: Any, names: Any, regex: Any) -> None:
        member_id = self.someone(data)
        client = self.clients[member_id]
        if client.epoch > 0:
            request = beat(member_id, client.epoch, topics=frozenset(names), regex=regex, owned=client.owned)
            self.hear(member_id, self.world.send(request), True)

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), epoch=st.sampled_from([None, -1, STATIC_LEAVE_EPOCH]))
    def a_client_goes(self, data: Any, epoch: int | None) -> None:
        """It dies, or leaves for good or, if it is static, for a while."""
        member_id = self.someone(data)
        client = self.clients.pop(member_id)
        if epoch is not None and (epoch == -1 or client.instance_id is not None):
            self.world.send(beat(member_id, epoch, instance_id=client.instance_id))

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), partition=st.integers(0, 2), offset=st.integers(0, 100), behind=st.integers(0, 1))
    def a_client_commits(self, data: Any, partition: int, offset: int, behind: int) -> None:
        member_id = self.someone(data)
        epoch = self.clients[member_id].epoch - behind
        if epoch > 0 and self.world.commit(member_id, epoch, partition, offset) is ErrorCode.NONE:
            self.committed[partition] = offset

    @rule(counts=st.dictionaries(st.sampled_from(["others", "later"]), st.integers(0, 4), min_size=1))
    def topics_change(self, counts: dict[str, int]) -> None:
        self.world.change_topics(**counts)

    @rule(ms=st.sampled_from([0, 1_000, 11_000, 46_000]))
    def time_passes(self, ms: int) -> None:
        self.world.pass_time(ms)

    @rule()
    def the_coordinator_crashes(self) -> None:
        world = self.world
        again = world.new_shard()
        for key, value in world.logged:
            fact = again.decode(StoredRecord(memoryview(key), None if value is None else memoryview(value)))
            assert fact is not None
            again.apply(fact)
        before, after = deepcopy(world.shard.consumer_groups), deepcopy(again.consumer_groups)
        for group in (*before.values(), *after.values()):
            group.topics_version = -1  # lives in memory only
        assert after == before
        assert again.offsets == world.shard.offsets
        world.shard = again
        world.timers.clear()
        world.do(lambda shard, now_ms: shard.decide_started(now_ms))

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        owners: dict[tuple[bytes, int], str] = {}
        for group in self.world.shard.consumer_groups.values():
            for member in group.members.values():
                for held in (member.progress.assigned, member.progress.revoking):
                    for topic, partitions in held.items():
                        for partition in partitions:
                            assert owners.setdefault((topic, partition), member.member_id) == member.member_id
                            assert group.owner_of(topic, partition) == member.member_id
            assert sum(map(len, group.owners.values())) == len(owners)

    @invariant()
    def no_two_clients_read_a_partition(self) -> None:
        """Of those that the coordinator has not given up: a fenced one learns of it with its next heartbeat."""
        members = self.world.shard.consumer_groups[GROUP].members if self.world.shard.consumer_groups else {}
        readers: dict[tuple[bytes, int], str] = {}
        for member_id, client in self.clients.items():
            if member_id in members and members[member_id].epoch >= client.epoch > 0:
                for topic, partitions in client.owned.items():
                    for partition in partitions:
                        assert readers.setdefault((topic, partition), member_id) == member_id

    @invariant()
    def targets_and_members_belong_together(self) -> None:
        for group in self.world.shard.consumer_groups.values():
            assert group.target.keys() <= group.members.keys()
            assert len(group.members) <= CONFIG.max_size
            assert group.target_epoch <= group.epoch
            assert (group.state is ConsumerState.EMPTY) == (not group.members)

    @invariant()
    def no_committed_offset_is_lost(self) -> None:
        kept = self.world.shard.offsets_of(GROUP).get("orders", {})
        assert {partition: offset.offset for partition, offset in kept.items()} == self.committed

    def teardown(self) -> None:
        """Clients that stay and do as they are told come to share everything."""
        world = self.world
        world.pass_time(60_000)
        if not world.shard.consumer_groups or not self.clients:
            return
        for _ in range(30):
            for member_id, client in list(self.clients.items()):
                if client.epoch == 0:
                    reply = world.send(joining(member_id, "orders", instance_id=client.instance_id))
                    if reply.error_code != ErrorCode.NONE:
                        del self.clients[member_id]
                        continue
                    self.hear(member_id, reply, True)
                else:
                    request = beat(member_id, client.epoch, owned=client.owned, instance_id=client.instance_id)
                    self.hear(member_id, world.send(request), True)
                client.give_up()
                self.no_partition_has_two_owners()
            world.pass_time(1_000)
        if self.clients:
            assert world.group.state is ConsumerState.STABLE
            wanted = {partition for partition in range(3) if "orders" in world.group.subscribed_topics()}
            owned = [partition for partition in wanted if world.group.owner_of(topic_id("orders"), partition)]
            assert set(owned) == wanted


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
