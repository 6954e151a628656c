"""Each broker is restarted cleanly, the next when all replicas are in sync again; the controller is the last."""

from __future__ import annotations

import time

from moldau.cli.verify.clusters.hooks import RESTART
from moldau.cli.verify.trial import Trial


def perform(trial: Trial) -> None:
    trial.need_brokers(2)
    trial.target.need(RESTART)
    topic, watch = trial.topic(partitions=3)
    sender, member = trial.loaded(topic)
    begun_s = time.monotonic()
    controller = trial.controller()
    for broker in sorted(trial.target.nodes, key=lambda each: (each == controller, each)):
        trial.let_run(trial.wishes.duration_s / len(trial.target.nodes))
        trial.progress.step(f"restart broker {broker}")
        restarted_s = time.monotonic()
        trial.down.add(broker)
        trial.target.restart(broker)
        trial.down.discard(broker)
        trial.outcome.add("restart_ms", (time.monotonic() - restarted_s) * 1_000)
        trial.outcome.add("in_sync_ms", trial.await_in_sync(watch))
    trial.await_acknowledged(sender)
    trial.note_gaps(begun_s, sender, member)
    trial.judge(topic, [sender], [member])
