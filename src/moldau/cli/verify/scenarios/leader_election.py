"""The leader of a partition is killed, again and again."""

from __future__ import annotations

import time

from moldau.cli.verify.clusters.hooks import START, STOP
from moldau.cli.verify.clusters.views import View
from moldau.cli.verify.scenarios.losing import bring_back, lose, note_acknowledgement
from moldau.cli.verify.trial import Trial


def perform(trial: Trial) -> None:
    trial.need_brokers(2)
    trial.target.need(STOP, START)
    topic, watch = trial.topic()
    sender, member = trial.loaded(topic)
    begun_s = time.monotonic()

    def has_other_leader(view: View) -> bool:
        return 0 in view.partitions and view.partitions[0].leader in trial.living

    for _ in range(trial.wishes.rounds):
        trial.let_run(trial.wishes.duration_s / trial.wishes.rounds)
        victim = trial.leader(watch)
        asked_s = time.monotonic()
        lost_s = lose(trial, watch, victim)
        view = trial.await_view(watch, has_other_leader, "no other broker leads", since_s=asked_s)
        trial.outcome.add("election_ms", max(0.0, view.at_s - lost_s) * 1_000)
        note_acknowledgement(trial, sender, lost_s=lost_s, led_s=view.at_s)
        bring_back(trial, watch, victim)
    trial.note_gaps(begun_s, sender, member)
    trial.judge(topic, [sender], [member])
