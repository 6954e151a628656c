"""What can go wrong with a cluster, done to it and undone again.

Each fault is a context: it strikes on entry, lasts as long as the block, and is undone at its end, also when the run is
interrupted. A broker that ended itself, as it may when its disk fails, is started again.
"""

from __future__ import annotations

import contextlib
import errno
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tests.faults.cluster import asking, changes
from tests.faults.cluster.cluster import Broker, Cluster, write_meta_properties
from tests.faults.cluster.network import EVERYBODY, Network
from tests.faults.cluster.schedule import ALL, CONTROLLER, FOLLOWER, GROUP_COORDINATOR, LEADER, MAJORITY, Planned
from tests.faults.cluster.worker import GROUP, PLAIN
from tests.faults.failing_disk import ALWAYS

RESET_EVERY_S = 0.7
FAILOVER_S = 3.0
ISR_S_MAX = 120.0


@dataclass
class Ground:
    """Where faults strike."""

    cluster: Cluster
    network: Network
    clients: list[str]
    """Hosts."""
    transactional_id: str
    """Of some client, whose coordinator has a role."""
    chance: random.Random

    def chosen(self, role: str) -> list[Broker]:
        """Who has that role at this moment. Raises OSError when nobody can say."""
        brokers, chance = self.cluster.brokers, self.chance
        if role == ALL:
            return list(brokers.values())
        if role == MAJORITY:
            return chance.sample(list(brokers.values()), len(brokers) // 2 + 1)
        if role in (LEADER, FOLLOWER):
            partitions = self.cluster.state().partitions
            state = partitions[PLAIN, chance.randrange(sum(topic == PLAIN for topic, _ in partitions))]
            others = sorted(set(state.replicas) - {state.leader})
            wanted = chance.choice(others) if role == FOLLOWER and others else state.leader
        elif role == CONTROLLER:
            wanted = self.cluster.controller()
        elif role == GROUP_COORDINATOR:
            wanted = self.cluster.coordinator(GROUP, asking.GROUP)
        else:
            wanted = self.cluster.coordinator(self.transactional_id, asking.TRANSACTION)
        if wanted not in brokers:
            raise ConnectionError(f"nobody is the {role} at this moment")
        return [brokers[wanted]]

    def hosts_but(self, targets: list[Broker]) -> list[str]:
        struck = {target.host for target in targets}
        return [broker.host for broker in self.cluster.brokers.values() if broker.host not in struck]


Strike: TypeAlias = Callable[[Ground, list[Broker]], AbstractContextManager[None]]


def strike(ground: Ground, planned: Planned, targets: list[Broker]) -> AbstractContextManager[None]:
    return STRIKES[planned.kind.name](ground, targets)


def _ended_by(number: signal.Signals) -> Strike:
    @contextlib.contextmanager
    def ended(ground: Ground, targets: list[Broker]) -> Iterator[None]:
        for target in targets:
            target.send(number)
        try:
            for target in targets:
                target.end(number)
            yield
        finally:
            _restart(ground, targets)

    return ended


def _restart(ground: Ground, targets: list[Broker]) -> None:
    """All at once: one that waits for others to come must not be waited for."""
    for target in targets:
        if not target.is_running:
            target.launch(ground.network)
    for target in targets:
        ground.cluster.restart(target)


@contextlib.contextmanager
def _paused(ground: Ground, targets: list[Broker]) -> Iterator[None]:
    for target in targets:
        target.send(signal.SIGSTOP)
    try:
        yield
    finally:
        for target in targets:
            target.send(signal.SIGCONT)
        _restart(ground, targets)


@contextlib.contextmanager
def _rolling_restart(ground: Ground, _: list[Broker]) -> Iterator[None]:
    for broker in ground.cluster.brokers.values():
        await_full_isr(ground.cluster, ISR_S_MAX)
        broker.end(signal.SIGTERM)
        ground.cluster.restart(broker)
    yield


def await_full_isr(cluster: Cluster, timeout_s: float) -> bool:
    """Whether all replicas of all partitions are in sync in time."""
    deadline_s = time.monotonic() + timeout_s
    while time.monotonic() < deadline_s:
        with contextlib.suppress(OSError):
            state = cluster.state()
            if state.brokers == frozenset(cluster.brokers) and all(
                each.isr == frozenset(each.replicas) and each.leader in each.isr for each in state.partitions.values()
            ):
                return True
        time.sleep(0.3)
    return False


def _cut_off(cut: Callable[[Ground, list[Broker]], None]) -> Strike:
    @contextlib.contextmanager
    def cut_off(ground: Ground, targets: list[Broker]) -> Iterator[None]:
        try:
            cut(ground, targets)
            yield
        finally:
            ground.network.heal()
            _restart(ground, targets)

    return cut_off


@contextlib.contextmanager
def _cut_off_then_killed(ground: Ground, targets: list[Broker]) -> Iterator[None]:
    """What a leader took while no follower could reach it dies with it, and must not have been acknowledged."""
    _part_from_brokers(ground, targets)
    try:
        yield
    finally:
        for target in targets:
            target.end(signal.SIGKILL)
        ground.network.heal()
        time.sleep(ground.cluster.shape.session_timeout_s + FAILOVER_S)  # else it would lead again
        _restart(ground, targets)


def _isolate(ground: Ground, targets: list[Broker]) -> None:
    for target in targets:
        ground.network.cut(target.host, EVERYBODY)
        ground.network.cut(EVERYBODY, target.host)


def _part_from_brokers(ground: Ground, targets: list[Broker]) -> None:
    ground.network.part([target.host for target in targets], ground.hosts_but(targets))


def _nothing_out(ground: Ground, targets: list[Broker]) -> None:
    for target in targets:
        for other in ground.hosts_but(targets):
            ground.network.cut(target.host, other)


def _nothing_in(ground: Ground, targets: list[Broker]) -> None:
    for target in targets:
        for other in ground.hosts_but(targets):
            ground.network.cut(other, target.host)


def _part_from_store(ground: Ground, targets: list[Broker]) -> None:
    ground.network.part([target.host for target in targets], ground.cluster.store)


def _part_client(ground: Ground, _: list[Broker]) -> None:
    ground.network.part([ground.chance.choice(ground.clients)], ground.hosts_but([]))


def _slow_down(ground: Ground, targets: list[Broker]) -> None:
    ground.network.slow_down(targets[0].host, ground.chance.uniform(0.02, 0.3))


def _lose_packets(ground: Ground, targets: list[Broker]) -> None:
    ground.network.slow_down(targets[0].host, 0.005, lost_share=ground.chance.uniform(0.02, 0.2))


@contextlib.contextmanager
def _resets(ground: Ground, targets: list[Broker]) -> Iterator[None]:
    ending = threading.Event()

    def reset() -> None:
        while not ending.is_set():
            for target in targets:
                ground.network.reset(target.host)
            ending.wait(RESET_EVERY_S)

    thread = threading.Thread(target=reset, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def _disk(*rules: tuple[str, int, int]) -> Strike:
    """Each rule: a call, the error it ends with, and how long it takes."""

    @contextlib.contextmanager
    def failing(ground: Ground, targets: list[Broker]) -> Iterator[None]:
        for target in targets:
            assert target.disk is not None
            for call, error, delay_ms in rules:
                target.disk.fail(f"{target.data}/*", call, error=error, delay_ms=delay_ms, times=ALWAYS)
        try:
            yield
        finally:
            is_error = any(error for _, error, _ in rules)
            for target in targets:
                assert target.disk is not None
                target.disk.heal()
                if is_error:  # what a broker has given up it opens again at its next start
                    target.end(signal.SIGTERM)
            _restart(ground, targets)

    return failing


def _damaged(damage: Callable[[Ground, Broker], None]) -> Strike:
    """Something happens to the files of a broker that was killed."""

    @contextlib.contextmanager
    def damaged(ground: Ground, targets: list[Broker]) -> Iterator[None]:
        commands = [target.command for target in targets]
        for target in targets:
            target.end(signal.SIGKILL)
        try:
            for target in targets:
                damage(ground, target)
            yield
        finally:
            _restart(ground, targets)
            for target, command in zip(targets, commands, strict=True):
                target.command = command

    return damaged


def _lose_disk(ground: Ground, target: Broker) -> None:
    """The folder is new and empty. Apache Kafka wants it formatted, with another id, and Moldau wants to be told."""
    path = target.data / "meta.properties"
    known = dict(line.split("=", 1) for line in path.read_text().splitlines() if "=" in line)
    shutil.rmtree(target.data)
    target.data.mkdir()
    if ground.cluster.shape.kind == "apache":
        write_meta_properties(path, known, target.id)
    else:
        target.command = [*target.command, "--accept-lost-log-dirs"]


def _last_segments(target: Broker) -> list[Path]:
    folders = [path for path in target.data.iterdir() if path.is_dir() and not path.name.startswith("__cluster")]
    lasts = (max(folder.glob("*.log"), default=None) for folder in sorted(folders))
    return [path for path in lasts if path is not None and path.stat().st_size]


def _tear_tails(ground: Ground, target: Broker) -> None:
    for path in _last_segments(target):
        size = path.stat().st_size
        with path.open("r+b") as file:
            file.truncate(size - ground.chance.randrange(1, min(size, 200) + 1))


def _flip_bits(ground: Ground, target: Broker) -> None:
    """One in the last segment of every partition, near its end, and one in its index."""
    for path in _last_segments(target):
        for each in (path, path.with_suffix(".index")):
            size = each.stat().st_size if each.exists() else 0
            if size:
                at = size - ground.chance.randrange(1, min(size, 5_000) + 1)
                with each.open("r+b") as file:
                    file.seek(at)
                    byte = file.read(1)[0]
                    file.seek(at)
                    file.write(bytes([byte ^ 1 << ground.chance.randrange(8)]))


@contextlib.contextmanager
def _clock_jump(ground: Ground, targets: list[Broker]) -> Iterator[None]:
    """Less than an hour: beyond that brokers may refuse records for their times, and a day makes producers expire."""
    jump_s = ground.chance.choice([-1_800, -30, 30, 1_800])
    for target in targets:
        assert target.clock is not None
        target.clock.jump(jump_s)
    try:
        yield
    finally:
        for target in targets:
            assert target.clock is not None
            target.clock.jump(0)
        _restart(ground, targets)


def _store_killed(count: Callable[[Cluster], list[str]]) -> Strike:
    @contextlib.contextmanager
    def killed(ground: Ground, _: list[Broker]) -> Iterator[None]:
        servers = [ground.cluster.store[host] for host in count(ground.cluster)]
        for server in servers:
            server.end(signal.SIGKILL)
        try:
            yield
        finally:
            for server in servers:
                server.launch(ground.network)
            ground.cluster.await_store()
            _restart(ground, list(ground.cluster.brokers.values()))

    return killed


STRIKES: dict[str, Strike] = {
    "kill -9": _ended_by(signal.SIGKILL),
    "controller killed": _ended_by(signal.SIGKILL),
    "SIGTERM": _ended_by(signal.SIGTERM),
    "SIGSTOP": _paused,
    "rolling restart": _rolling_restart,
    "isolation": _cut_off(_isolate),
    "partition from the other brokers": _cut_off(_part_from_brokers),
    "partition from the other brokers, then kill -9": _cut_off_then_killed,
    "one-way partition, nothing out": _cut_off(_nothing_out),
    "one-way partition, nothing in": _cut_off(_nothing_in),
    "partition from the store": _cut_off(_part_from_store),
    "partition of a client": _cut_off(_part_client),
    "slow network": _cut_off(_slow_down),
    "lost packets": _cut_off(_lose_packets),
    "connection resets": _resets,
    "slow disk": _disk(("write", 0, 10), ("fsync", 0, 300)),
    "fsync error": _disk(("fsync", errno.EIO, 0)),
    "disk full": _disk(("write", errno.ENOSPC, 0)),
    "log directory gone": _disk(("any", errno.EIO, 0)),
    "disk lost": _damaged(_lose_disk),
    "torn tail": _damaged(_tear_tails),
    "flipped bit": _damaged(_flip_bits),
    "clock jump": _clock_jump,
    "reassignment": changes.reassignment,
    "leader elections": changes.elections,
    "topics made and deleted": changes.passing_topics,
    "store leader killed": _store_killed(lambda cluster: [cluster.store_leader()]),
    "store majority lost": _store_killed(lambda cluster: list(cluster.store)[:2]),
}
