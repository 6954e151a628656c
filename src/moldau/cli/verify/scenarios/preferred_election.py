"""Another replica is preferred and elected, and so on until the first one leads again. No broker is touched."""

from __future__ import annotations

import time
from functools import partial

from moldau.cli.verify.clusters import asking
from moldau.cli.verify.clusters.views import View, Watch
from moldau.cli.verify.trial import Trial


def perform(trial: Trial) -> None:
    trial.need_brokers(2)
    topic, watch = trial.topic()
    sender, member = trial.loaded(topic)
    begun_s = time.monotonic()
    order = trial.await_view(watch, lambda view: 0 in view.partitions, "the topic is unknown", since_s=0).partitions[0]
    replicas = order.replicas
    for _ in order.replicas:
        trial.let_run(trial.wishes.duration_s / len(order.replicas))
        replicas = (*replicas[1:], replicas[0])
        trial.progress.step(f"broker {replicas[0]} is to lead")
        _move_leader(trial, topic, watch, replicas)
    trial.await_acknowledged(sender)
    trial.note_gaps(begun_s, sender, member)
    trial.judge(topic, [sender], [member])


def _move_leader(trial: Trial, topic: str, watch: Watch, replicas: tuple[int, ...]) -> None:
    asked_s = time.monotonic()
    trial.ask(partial(asking.reorder_replicas, topic=topic, replicas=replicas), "the replicas can't be given an order")

    def has_order(view: View) -> bool:
        return 0 in view.partitions and view.partitions[0].replicas == replicas

    trial.await_view(watch, has_order, "the order of replicas is the old one", since_s=asked_s)
    elected_s = time.monotonic()
    trial.ask(partial(asking.elect_preferred, topic=topic), "the preferred replica was not elected")

    def has_leader(view: View) -> bool:
        return 0 in view.partitions and view.partitions[0].leader == replicas[0]

    led = trial.await_view(watch, has_leader, f"broker {replicas[0]} does not lead", since_s=asked_s)
    trial.outcome.add("moved_ms", max(0.0, led.at_s - elected_s) * 1_000)
