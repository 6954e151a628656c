"""The controller is killed: until another one is there, and until it makes a topic."""

from __future__ import annotations

import time
from functools import partial

from moldau.cli.verify.clusters import asking
from moldau.cli.verify.clusters.hooks import START, STOP
from moldau.cli.verify.scenarios.losing import bring_back, lose
from moldau.cli.verify.trial import Trial
from moldau.client.cluster import Cluster, Refused


def perform(trial: Trial) -> None:
    trial.need_brokers(2)
    trial.target.need(STOP, START)
    topic, watch = trial.topic()
    sender, member = trial.loaded(topic)
    begun_s = time.monotonic()
    for number in range(trial.wishes.rounds):
        trial.let_run(trial.wishes.duration_s / trial.wishes.rounds)
        victim = trial.controller()
        lost_s = lose(trial, watch, victim)
        trial.ask(partial(_is_other, victim=victim), "nobody controls")
        trial.outcome.add("controller_ms", (time.monotonic() - lost_s) * 1_000)
        probe = f"{trial.prefix}-probe-{number}"
        trial.topics.append(probe)
        create = partial(asking.create_topic, name=probe, partitions=1, replication_factor=1, config={})
        trial.ask(create, "no topic can be made")
        trial.outcome.add("topic_made_ms", (time.monotonic() - lost_s) * 1_000)
        bring_back(trial, watch, victim)
    trial.note_gaps(begun_s, sender, member)
    trial.judge(topic, [sender], [member])


def _is_other(client: Cluster, *, victim: int) -> None:
    if asking.controller_of(client) in (victim, -1):
        raise Refused(0, "the old controller")
