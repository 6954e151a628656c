"""One scenario's cluster and what scenarios do with it; its clients end with it."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.cluster import asking
from tests.faults.cluster.asking import PartitionState, Refused
from tests.faults.cluster.cluster import Broker, Cluster, Shape
from tests.faults.cluster.faults import await_full_isr
from tests.faults.cluster.network import Network
from tests.faults.cluster.replica_files import differences
from tests.scenarios.clients import CLASSIC, MEMBERS, SENDERS, Member, Sender
from tests.scenarios.judging import Outcome, Wrong

LEADER, CONTROLLER = "leader", "controller"
TOPIC = "test-topic"
PARTITIONS = 3
WAIT_S = 180.0  # the machine may be busy
LOOK_S = 0.1
RATE = 1_000


@dataclass
class Trial:
    cluster: Cluster
    network: Network
    directory: Path
    outcome: Outcome = field(default_factory=Outcome)
    clients: list[Sender | Member] = field(default_factory=list)

    @property
    def bootstrap(self) -> str:
        return self.cluster.bootstrap

    def create_topic(self, name: str, *, partitions: int = PARTITIONS, min_insync: int = 2) -> None:
        config, address = {"min.insync.replicas": str(min_insync)}, self.cluster.brokers[1].address
        deadline_s = time.monotonic() + WAIT_S
        while True:  # a cluster that has just come together may refuse it for a while
            try:
                asking.create_topic(address, name, partitions=partitions, replication_factor=3, config=config)
                break
            except (OSError, Refused) as wrong:
                if time.monotonic() > deadline_s:
                    raise Wrong(f"{name} can't be made: {wrong}") from wrong
                time.sleep(LOOK_S)
        self.await_in_sync()

    def send(self, client: str, topic: str = TOPIC, *, rate: int = RATE) -> Sender:
        sender = SENDERS[client](self.directory, self.bootstrap, topic, rate=rate)
        self.clients.append(sender)
        return sender

    def join(
        self, client: str, topic: str = TOPIC, *, count: int = 1, protocol: str = CLASSIC, group: str = "test-group",
        isolation: str = "read_uncommitted",
    ) -> list[Member]:  # fmt: skip
        members: list[Member] = []
        for number in range(count):
            name = f"{group}-{topic}-{number}"
            member = MEMBERS[client](
                self.directory, self.bootstrap, topic, group, name, protocol=protocol, isolation=isolation
            )  # fmt: skip
            members.append(member)
            self.clients.append(member)
        return members

    def partition(self, topic: str = TOPIC, partition: int = 0) -> PartitionState:
        return self.cluster.state().partitions[topic, partition]

    def holder(self, role: str) -> Broker:
        """Who leads the first partition, or controls."""
        found: list[int] = []

        def is_known() -> bool:
            found[:] = [self.partition().leader if role == LEADER else self.cluster.controller()]
            return found[0] in self.cluster.brokers and self.cluster.brokers[found[0]].is_running

        self.until(is_known, f"there is no {role}")
        return self.cluster.brokers[found[0]]

    def end(self, broker: Broker, *, clean: bool) -> None:
        broker.end(signal.SIGTERM if clean else signal.SIGKILL)

    def restart(self, broker: Broker, *, clean: bool) -> None:
        """A broker that was killed is started again when the others go on without it."""
        self.end(broker, clean=clean)
        if not clean:
            self.await_others(broker)
        self.cluster.restart(broker)

    def await_others(self, broker: Broker) -> None:
        """Until a broker that ended leads and controls nothing."""

        def is_replaced() -> bool:
            led = [state for state in self.cluster.state().partitions.values() if state.leader in (broker.id, -1)]
            return not led and self.cluster.controller() not in (broker.id, -1)

        self.until(is_replaced, f"broker {broker.id} is not replaced")

    def await_in_sync(self) -> None:
        if not await_full_isr(self.cluster, WAIT_S):
            raise Wrong(f"not all replicas are in sync after {WAIT_S:.0f} s: {self.cluster.state()}")

    def await_acknowledged(self, sender: Sender, count: int) -> None:
        self.until(
            lambda: len(sender.progress.acknowledged) >= count,
            lambda: f"{len(sender.progress.acknowledged)} of {count} records are acknowledged",
        )

    def await_read(self, sender: Sender, members: list[Member]) -> None:
        """All that is acknowledged by now."""
        wanted = {record.value for record in sender.progress.acknowledged}

        def missing() -> set[str]:
            return wanted - {record.value for member in members for record in member.records}

        with contextlib.suppress(Wrong):  # it is judged in the end
            self.until(lambda: not missing(), "")

    def until(self, is_so: Callable[[], bool], what: str | Callable[[], str], *, timeout_s: float = WAIT_S) -> float:
        """Gives how long it took."""
        begun_s = time.monotonic()
        while True:
            with contextlib.suppress(OSError, Refused):
                if is_so():
                    return time.monotonic() - begun_s
            if time.monotonic() > begun_s + timeout_s:
                raise Wrong(f"{what if isinstance(what, str) else what()} after {timeout_s:.0f} s")
            time.sleep(LOOK_S)

    def compare_replicas(self) -> None:
        """When nothing is written any more."""
        for broker in self.cluster.brokers.values():
            if not broker.is_running:
                self.cluster.restart(broker)
        self.await_in_sync()
        found: list[str] = []
        for (topic, partition), state in self.cluster.state().partitions.items():
            name = f"{topic}-{partition}"
            leader = self.cluster.brokers[state.leader].address
            start = asking.log_start(leader, topic, partition)
            end = asking.high_watermark(leader, topic, partition)
            brokers = {each: self.cluster.brokers[each] for each in state.replicas}
            folders = {each: broker.log_directory_of(name) / name for each, broker in brokers.items()}
            found += differences(name, folders, high_watermark=end, start_offset=start)
        self.outcome.forbid(found, "replicas differ")


@contextlib.contextmanager
def running_trial(shape: Shape, network: Network, directory: Path) -> Iterator[Trial]:
    trial = Trial(Cluster(shape, network, directory), network, directory)
    with contextlib.ExitStack() as stack:
        stack.callback(trial.cluster.close)
        trial.cluster.start()
        stack.callback(lambda: [client.stop() for client in trial.clients])
        yield trial
