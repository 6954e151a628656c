"""One scenario on one cluster: its topics, clients and views, and all of them gone when it is over."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from moldau.cli.verify.checking import Acknowledged, Counts, Stored, judged, longest_gap
from moldau.cli.verify.clients.verifiable import CLASSIC, Client, Copier, Member, OpenTransaction, Sender
from moldau.cli.verify.clusters import asking
from moldau.cli.verify.clusters.hooks import ASKED, HEAL, PLACE, RESUME, START
from moldau.cli.verify.clusters.target import Target, connect
from moldau.cli.verify.clusters.views import View, Watch
from moldau.cli.verify.outcome import Outcome, Skipped, Wrong
from moldau.cli.verify.progress import Progress
from moldau.cli.wire import cluster_of
from moldau.client.cluster import Cluster, NoAnswer, Refused
from moldau.client.connection import Unsupported
from moldau.client.groups.committed import delete_groups
from moldau.core.errors import ErrorCode

LOOK_S = 0.01
FIRST = 20  # records that have to be acknowledged, and read; fewer where they take longer than a second
FLUSH_S_MAX = 150.0  # a producer gives a record up after 120 s
# What does not pass by itself.
FINAL = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.POLICY_VIOLATION,
    ErrorCode.INVALID_CONFIG,
)  # fmt: skip
END_S_MAX = 5.0
READ_S_MAX = 10.0
SESSION_MS = 6_000  # of consumers: brokers take no shorter one unless they are told to


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user said about all scenarios."""

    duration_s: float = 5.0
    rate: int = 200
    rounds: int = 3
    acks: int = -1
    replicas: int = 3
    min_insync: int = 2
    recovery_s: float = 90.0
    delay_ms: int = 200


@dataclass(slots=True)
class Trial:
    target: Target
    wishes: Wishes
    outcome: Outcome
    progress: Progress
    prefix: str
    """Of the names of all topics, groups and transactional ids."""
    topics: list[str] = field(default_factory=list)
    groups: set[str] = field(default_factory=set)
    clients: list[Client] = field(default_factory=list)
    watches: list[Watch] = field(default_factory=list)
    down: set[int] = field(default_factory=set)
    """Brokers that do not run, by this scenario's doing."""
    paused: set[int] = field(default_factory=set)
    slow: set[int] = field(default_factory=set)

    # -- the cluster

    def ask(self, question: Callable[[Cluster], None], what: str, *, timeout_s: float | None = None) -> None:
        """Any broker that answers, again and again until one has."""
        self.until(lambda: self._asked(question), what, timeout_s=timeout_s)

    def _asked(self, question: Callable[[Cluster], None]) -> bool:
        for broker in self.living:
            with contextlib.suppress(NoAnswer, Refused, Unsupported), connect(self.target, broker) as client:
                question(client)
                return True
        return False

    @property
    def living(self) -> list[int]:
        return [each for each in self.target.nodes if each not in self.down | self.paused]

    def controller(self) -> int:
        found = [-1]

        def look(client: Cluster) -> None:
            found[0] = asking.controller_of(client)
            if found[0] < 0:
                raise Refused(0, "nobody controls")

        self.ask(look, "no controller is known")
        return found[0]

    def topic(
        self,
        name: str = "",
        *,
        partitions: int = 1,
        config: Mapping[str, str] | None = None,
        assignment: Sequence[int] | None = None,
    ) -> tuple[str, Watch]:
        """Made, known to every broker and in sync; `assignment` are the replicas of its one partition."""
        full = f"{self.prefix}-{name}" if name else self.prefix
        self.topics.append(full)
        wanted = {"min.insync.replicas": str(self.wishes.min_insync), **(config or {})}
        create = partial(
            asking.create_topic, name=full, partitions=partitions, replication_factor=self.wishes.replicas,
            config=wanted, assignment=assignment,
        )  # fmt: skip
        refused: list[str] = []

        def made(client: Cluster) -> None:
            try:
                create(client)
            except Refused as wrong:
                if wrong.code in FINAL:
                    raise Wrong(f"topic {full} can't be made: {wrong}") from None
                refused[:] = [str(wrong)]
                raise

        self.until(lambda: self._asked(made), lambda: f"topic {full} can't be made: {' '.join(refused)}")
        watch = Watch(full, [*self.target.nodes], partial(connect, self.target))
        self.watches.append(watch)
        self.await_in_sync(watch)
        return full, watch

    def need_brokers(self, count: int) -> None:
        if len(self.target.nodes) < count:
            raise Skipped(f"needs {count} brokers; there are {len(self.target.nodes)}")

    def await_in_sync(self, watch: Watch) -> float:
        """As every broker that runs sees it."""

        def is_whole() -> bool:
            views = [watch.latest[each] for each in self.living]
            return all(view is not None and view.is_in_sync and set(self.living) <= view.brokers for view in views)

        return self.until(is_whole, "not all replicas are in sync")

    def leader(self, watch: Watch, partition: int = 0) -> int:
        found = [-1]

        def is_known() -> bool:
            views = [watch.latest[each] for each in self.living]
            leaders = {view.partitions[partition].leader for view in views if view and partition in view.partitions}
            found[0] = next(iter(leaders), -1)
            return len(leaders) == 1 and found[0] in self.living

        self.until(is_known, "there is no leader")
        return found[0]

    def await_view(self, watch: Watch, is_so: Callable[[View], bool], what: str, *, since_s: float) -> View:
        """The first one by a broker that lives."""

        def found() -> View | None:
            return watch.first(lambda view: view.broker in self.living and is_so(view), since_s=since_s)

        self.until(lambda: found() is not None, what)
        view = found()
        assert view is not None, "it was found"
        return view

    def kill(self, broker: int) -> float:
        """Gives when it was done, or begun: it is a command of the user's that takes its time."""
        self.progress.step(f"kill broker {broker}")
        self.down.add(broker)
        begun_s = time.monotonic()
        self.target.kill(broker)
        return begun_s

    def start(self, broker: int) -> None:
        self.progress.step(f"start broker {broker}")
        self.target.start(broker)
        self.down.discard(broker)

    def pause(self, broker: int) -> None:
        self.paused.add(broker)
        self.target.pause(broker)

    def resume(self, broker: int) -> None:
        self.target.resume(broker)
        self.paused.discard(broker)

    # -- clients

    def send(self, topic: str, *, prefix: int = 0, acks: int | None = None, rate: int | None = None) -> Sender:
        wanted = self.wishes.acks if acks is None else acks
        sender = Sender(
            self.target.settings, topic, prefix=prefix, rate=self.wishes.rate if rate is None else rate, acks=wanted
        )
        self.clients.append(sender)
        return sender

    def join(self, topic: str, *, group: str = "", protocol: str = CLASSIC, instance: str | None = None) -> Member:
        name = f"{self.prefix}-{group}" if group else self.prefix
        self.groups.add(name)
        member = Member(self.target.settings, topic, name, protocol=protocol, session_ms=SESSION_MS, instance=instance)
        self.clients.append(member)
        return member

    def copy(self, source: str, target: str) -> Copier:
        self.groups.add(f"{self.prefix}-copier")
        copier = Copier(self.target.settings, source, target, f"{self.prefix}-copier")
        self.clients.append(copier)
        return copier

    def open_transaction(self, topic: str, *, timeout_ms: int) -> OpenTransaction:
        client = OpenTransaction(self.target.settings, topic, f"{self.prefix}-open", timeout_ms=timeout_ms)
        self.clients.append(client)
        return client

    @property
    def _first(self) -> int:
        return min(FIRST, self.wishes.rate)

    def await_acknowledged(self, sender: Sender) -> None:
        wanted = len(sender.acknowledged) + self._first
        self._until_client(
            sender, lambda: len(sender.acknowledged) >= wanted,
            lambda: f"{len(sender.acknowledged)} of {wanted} records are acknowledged",
        )  # fmt: skip

    def await_read(self, member: Member) -> None:
        wanted = len(member.records) + self._first
        self._until_client(
            member, lambda: len(member.records) >= wanted, lambda: f"{len(member.records)} of {wanted} records are read"
        )

    def _until_client(self, client: Client, is_so: Callable[[], bool], what: Callable[[], str]) -> None:
        def checked() -> bool:
            if not client.process.is_running:
                raise Wrong(f"a client ended: {client.process.complaint}")
            return is_so()

        self.until(checked, what)

    def loaded(self, topic: str) -> tuple[Sender, Member]:
        """A producer and a consumer that are at work."""
        sender, member = self.send(topic), self.join(topic)
        self.await_acknowledged(sender)
        self.await_read(member)
        return sender, member

    def load(self) -> tuple[int, int]:
        """How many records are acknowledged, and read, so far."""
        senders = [each for each in self.clients if isinstance(each, Sender)]
        members = [each for each in self.clients if isinstance(each, Member)]
        return sum(len(each.acknowledged) for each in senders), sum(len(each.records) for each in members)

    # -- time

    def until(
        self, is_so: Callable[[], bool], what: str | Callable[[], str], *, timeout_s: float | None = None
    ) -> float:
        """Gives how long it took, in milliseconds."""
        begun_s = time.monotonic()
        limit_s = self.wishes.recovery_s if timeout_s is None else timeout_s
        while not is_so():
            if time.monotonic() > begun_s + limit_s:
                raise Wrong(f"{what if isinstance(what, str) else what()} after {limit_s:g} s")
            self.progress.tick()
            time.sleep(LOOK_S)
        return (time.monotonic() - begun_s) * 1_000

    def let_run(self, duration_s: float) -> None:
        """Under load, with nothing done to the cluster."""
        end_s = time.monotonic() + duration_s
        self.until(lambda: time.monotonic() >= end_s, "", timeout_s=duration_s + 1)

    def note_gaps(self, begun_s: float, sender: Sender, member: Member | None = None) -> None:
        """How long nothing was acknowledged, and read, at most."""
        end_s = time.monotonic()
        kinds = {"unacknowledged_ms": sender.times_s}
        if member is not None:
            kinds["unread_ms"] = [each.at_s for each in member.records]
        for name, times_s in kinds.items():
            self.outcome.add(name, longest_gap(times_s, begun_s, end_s).length_s * 1_000)

    # -- the end

    def judge(self, topic: str, senders: Sequence[Sender], members: Sequence[Member] | None) -> Counts:
        """When the load is over: what is acknowledged has to be in the log, and read."""
        for sender in senders:
            if sender.process.is_running and not sender.process.stop(FLUSH_S_MAX):
                self.outcome.complaints.append("a producer did not end")
        acknowledged = [each for sender in senders for each in sender.acknowledged]
        wanted = {each.value for each in acknowledged}
        if members is not None:
            with contextlib.suppress(Wrong):  # what was not read is judged
                self.until(lambda: not wanted.difference(*(each.values for each in members)), "")
        counts = self.compare(topic, acknowledged, members)
        refused = [each for sender in senders for each in sender.refused]
        if refused:
            self.outcome.complaints.append(f"{len(refused)} sends failed, such as {refused[0]}")
        return counts

    def compare(self, topic: str, acknowledged: Sequence[Acknowledged], members: Sequence[Member] | None) -> Counts:
        counts = self.counts(topic, acknowledged, members)
        self.outcome.take(counts)
        return counts

    def counts(self, topic: str, acknowledged: Sequence[Acknowledged], members: Sequence[Member] | None) -> Counts:
        """Against what is in the log."""
        stored: list[Stored] = []

        def read(client: Cluster) -> None:
            stored[:] = asking.stored_records(client, topic)

        with cluster_of(self.target.settings, timeout_s=READ_S_MAX) as client:
            self.until(lambda: _answered(read, client), "the log can't be read")
        readers = None if members is None else {str(at): each.records for at, each in enumerate(members)}
        return judged(acknowledged, stored, readers)

    def close(self, *, goes_on: bool) -> None:
        """Whatever happened: clients end, brokers go on, topics and groups are removed."""
        for client in self.clients:
            client.process.ask_to_stop()
        for client in self.clients:
            # Members leave their groups, which can be removed then; what does not end soon is killed.
            client.process.stop(END_S_MAX)
        for watch in self.watches:
            watch.close()
        if goes_on or not self.target.is_ours:
            self._bring_back()
        if not self.target.is_ours:
            self._clean_up()

    def _bring_back(self) -> None:
        """Nobody is asked for it: whoever pressed Ctrl-C at a question has gone."""
        backs = (
            (self.slow, HEAL, self.target.heal_disk),
            (self.paused, RESUME, self.target.resume),
            (self.down, START, self.target.start),
        )
        for brokers, action, back in backs:
            for broker in sorted(brokers):
                try:
                    if not self.target.does_itself(action):
                        raise Wrong(f"please {ASKED[action].replace(PLACE, str(broker))}")
                    back(broker)
                except Exception as wrong:  # the others are to come back all the same
                    self.outcome.complaints.append(f"broker {broker} may be left as the scenario made it: {wrong}")
            brokers.clear()

    def _clean_up(self) -> None:
        with cluster_of(self.target.settings, timeout_s=15.0) as client:
            try:
                if self.topics:
                    asking.delete_topics(client, self.topics)
            except (NoAnswer, Refused, Unsupported) as wrong:
                self.outcome.complaints.append(f"these topics may be left: {', '.join(self.topics)} ({wrong})")
            for group in self.groups:
                # A member that was killed is in it until its session ends; an empty group goes by itself.
                with contextlib.suppress(NoAnswer, Refused, Unsupported):
                    delete_groups(client, [group])


def _answered(question: Callable[[Cluster], None], client: Cluster) -> bool:
    try:
        question(client)
    except (NoAnswer, Refused):
        return False
    return True
