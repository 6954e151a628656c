"""Apache Kafka's ReplicationTest and ReplicationReplicaFailureTest: what is acknowledged outlives brokers' ends."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from tests.faults.cluster.cluster import Broker
from tests.scenarios.judging import judge
from tests.scenarios.trial import TOPIC, Trial

RECORDS = 5_000
RECORDS_BEHIND = 25_000
BOUNCES = 5
FIRST = 5


def end_or_bounce(trial: Trial, client: str, *, role: str, clean: bool, bounces: int = 0) -> None:
    """The broker with a role ends, or is bounced so often, whoever has the role by then."""
    trial.create_topic(TOPIC)
    sender, members = trial.send(client), trial.join(client)
    trial.until(lambda: len(members[0].records) >= FIRST, "nothing is read at first")
    if bounces:
        for _ in range(bounces):
            trial.restart(trial.holder(role), clean=clean)
    else:
        trial.end(trial.holder(role), clean=clean)
    trial.await_acknowledged(sender, len(sender.progress.acknowledged) + FIRST)
    trial.await_acknowledged(sender, RECORDS)
    sender.stop()
    trial.await_read(sender, members)
    judge(trial.outcome, sender, members)
    trial.compare_replicas()


@contextmanager
def cut_off(trial: Trial, broker: Broker) -> Iterator[None]:
    others = [each.host for each in trial.cluster.brokers.values() if each is not broker]
    trial.network.part([broker.host], others)
    try:
        yield
    finally:
        trial.network.heal()


@contextmanager
def paused(trial: Trial, broker: Broker) -> Iterator[None]:
    broker.send(signal.SIGSTOP)
    try:
        yield
    finally:
        broker.send(signal.SIGCONT)


def follower_falls_behind(
    trial: Trial, client: str, *, trouble: Callable[[Trial, Broker], AbstractContextManager[None]]
) -> None:
    """It leaves the ISR, misses records, and comes back."""
    trial.create_topic(TOPIC, partitions=1)
    sender, members = trial.send(client, rate=2_000), trial.join(client)
    trial.until(lambda: len(members[0].records) >= FIRST, "nothing is read at first")
    state, controller = trial.partition(), trial.cluster.controller()
    follower = next(each for each in state.replicas if each not in (state.leader, controller))
    before = len(sender.progress.acknowledged)
    with trouble(trial, trial.cluster.brokers[follower]):
        shrunk_s = trial.until(lambda: follower not in _in_sync(trial, follower), "the ISR has not shrunk")
        trial.await_acknowledged(sender, before + RECORDS_BEHIND)
    grown_s = trial.until(lambda: follower in _in_sync(trial, follower), "the ISR has not grown")
    sender.stop()
    trial.await_read(sender, members)
    judge(trial.outcome, sender, members)
    trial.outcome.figures |= {"ISR shrunk after": f"{shrunk_s:.1f} s", "grown after": f"{grown_s:.1f} s"}
    trial.compare_replicas()


def _in_sync(trial: Trial, follower: int) -> frozenset[int]:
    """As another broker knows it."""
    return trial.cluster.state(without=frozenset({follower})).partitions[TOPIC, 0].isr
