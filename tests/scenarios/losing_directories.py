"""Apache Kafka's LogDirFailureTest: a broker lives on without one of its log directories, and leads nothing of it."""

from __future__ import annotations

import errno

from tests.faults.cluster import asking
from tests.faults.cluster.cluster import Broker
from tests.faults.failing_disk import ALWAYS
from tests.scenarios.judging import Wrong, judge
from tests.scenarios.trial import Trial

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "min.insync.replicas": "1",
    "log.flush.interval.messages": "5",
    "log.roll.ms": "3000",
    "log.cleaner.enable": "false",  # each replica compacts on its own, and they are compared
}
LEADER, FOLLOWER = "leader", "follower"
OFFSETS = "__consumer_offsets"
LEAVE_S_MAX = 60.0
TOPICS = 4
RECORDS = 2_000
RATE = 200
FIRST = 5


def lose_a_directory(trial: Trial, client: str, *, role: str) -> None:
    lost, kept, broker = _chosen(trial, role)
    sender, members = trial.send(client, lost, rate=RATE), trial.join(client, lost, group="lost")
    trial.until(lambda: len(members[0].records) >= FIRST, "nothing is read at first")
    assert broker.disk is not None
    broker.disk.fail(f"{broker.log_directory_of(f'{lost}-0')}/*", error=errno.EIO, times=ALWAYS)

    def has_left() -> bool:
        state = trial.partition(lost)
        return state.leader not in (broker.id, -1) and broker.id not in state.isr

    left_s = trial.until(has_left, "the broker has not left leadership and ISR", timeout_s=LEAVE_S_MAX)
    trial.await_acknowledged(sender, len(sender.progress.acknowledged) + RECORDS)
    sender.stop()
    trial.await_read(sender, members)
    if not broker.is_running:
        raise Wrong(f"broker {broker.id} ended: {broker.output_path.read_text(errors='replace')[-1_000:]}")
    judge(trial.outcome, sender, members)
    trial.outcome.figures["left after"] = f"{left_s:.1f} s"
    _serve_alone(trial, client, broker, kept)
    broker.disk.heal()
    trial.end(broker, clean=True)
    trial.compare_replicas()


def _chosen(trial: Trial, role: str) -> tuple[str, str, Broker]:
    """A topic to lose, another whose directory stays, with that of the groups' offsets, and the broker."""
    for number in range(TOPICS):  # a new partition goes where the fewest are, so some of each kind are in either
        pair = {f"lost-{number}": 2, f"kept-{number}": 1}
        for name in sorted(pair, reverse=bool(number % 2)):
            trial.create_topic(name, partitions=1, min_insync=pair[name])
    trial.until(lambda: trial.cluster.coordinator("lost", asking.GROUP) > 0, "groups have no coordinator")
    brokers = trial.cluster.brokers.values()
    trial.until(lambda: all(each.log_directory_of(f"{OFFSETS}-0") for each in brokers), f"{OFFSETS} has no replicas")
    trial.await_in_sync()
    for number in range(TOPICS):
        lost = f"lost-{number}"
        state = trial.partition(lost)
        followers = [each for each in state.replicas if each != state.leader]
        broker = trial.cluster.brokers[state.leader if role == LEADER else followers[0]]
        stays = broker.log_directory_of(f"{OFFSETS}-0")
        kept = [f"kept-{each}" for each in range(TOPICS) if broker.log_directory_of(f"kept-{each}-0") == stays]
        if kept and broker.log_directory_of(f"{lost}-0") != stays:
            return lost, kept[0], broker
    raise Wrong("topics are not spread over the log directories")


def _serve_alone(trial: Trial, client: str, broker: Broker, topic: str) -> None:
    """What is in its other directory, when no other broker is left."""
    others = [each for each in trial.cluster.brokers.values() if each is not broker]
    for each in others:
        trial.end(each, clean=True)
    sender, members = trial.send(client, topic, rate=RATE), trial.join(client, topic, group="kept")
    trial.await_acknowledged(sender, RECORDS)
    sender.stop()
    trial.await_read(sender, members)
    if trial.partition(topic).isr != {broker.id}:
        raise Wrong(f"the ISR of {topic} is {set(trial.partition(topic).isr)}, and not broker {broker.id} alone")
    figures = dict(trial.outcome.figures)
    judge(trial.outcome, sender, members)
    alone = trial.outcome.figures["acknowledged"]
    trial.outcome.figures = {**figures, "alone": alone}
    for each in others:
        trial.cluster.restart(each)
