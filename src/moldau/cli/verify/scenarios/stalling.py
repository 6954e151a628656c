"""A follower that falls behind: its process is paused, or its disk is slow. The others go on, and it comes back."""

from __future__ import annotations

import time

from moldau.cli.verify.clients.verifiable import Sender
from moldau.cli.verify.clusters.hooks import HEAL, PAUSE, RESUME, SLOW
from moldau.cli.verify.clusters.views import View, Watch
from moldau.cli.verify.trial import Trial


def pause_broker(trial: Trial) -> None:
    """SIGSTOP: the machine takes packets, and the broker does nothing, not even hang up."""
    trial.need_brokers(3)
    trial.target.need(PAUSE, RESUME)
    topic, watch = trial.topic()
    sender, member = trial.loaded(topic)
    follower = _follower(trial, watch)
    trial.let_run(trial.wishes.duration_s / 2)
    begun_s = time.monotonic()
    trial.progress.step(f"pause broker {follower}, a follower")
    trial.pause(follower)

    def is_out(view: View) -> bool:
        return 0 in view.partitions and follower not in view.partitions[0].isr

    shrunk = trial.await_view(watch, is_out, f"broker {follower} does not leave the ISR", since_s=begun_s)
    trial.outcome.add("isr_shrunk_ms", (shrunk.at_s - begun_s) * 1_000)
    trial.await_acknowledged(sender)
    trial.let_run(trial.wishes.duration_s / 2)
    trial.progress.step(f"let broker {follower} go on")
    trial.resume(follower)
    trial.outcome.add("in_sync_ms", trial.await_in_sync(watch))
    trial.await_acknowledged(sender)
    trial.note_gaps(begun_s, sender, member)
    trial.judge(topic, [sender], [member])


def slow_disk(trial: Trial) -> None:
    trial.need_brokers(3)
    trial.target.need(SLOW, HEAL)
    topic, watch = trial.topic()
    sender, member = trial.loaded(topic)
    follower = _follower(trial, watch)
    trial.outcome.figures["acknowledged_per_s_before"] = _rate(trial, sender)
    begun_s = time.monotonic()
    if trial.target.is_ours:
        how = f"each pwrite and fsync of its process takes {trial.wishes.delay_ms} ms longer"
        trial.outcome.notes.append(f"the slow disk is a delay, not a device: {how}")
    trial.progress.step(f"a slow disk for broker {follower}, a follower")
    trial.slow.add(follower)
    trial.target.slow_disk(follower, trial.wishes.delay_ms)
    trial.outcome.figures["acknowledged_per_s_slow"] = _rate(trial, sender)
    trial.await_acknowledged(sender)
    shrunk = watch.first(lambda view: 0 in view.partitions and follower not in view.partitions[0].isr, since_s=begun_s)
    trial.outcome.figures["isr"] = "shrank" if shrunk else "stayed whole"
    trial.target.heal_disk(follower)
    trial.slow.discard(follower)
    trial.outcome.add("in_sync_ms", trial.await_in_sync(watch))
    trial.await_acknowledged(sender)
    trial.note_gaps(begun_s, sender, member)
    trial.judge(topic, [sender], [member])


def _rate(trial: Trial, sender: Sender) -> float:
    before = len(sender.acknowledged)
    trial.let_run(trial.wishes.duration_s)
    return (len(sender.acknowledged) - before) / trial.wishes.duration_s


def _follower(trial: Trial, watch: Watch) -> int:
    """Of the replicas, one that does not control the cluster, if there is such a one."""
    leader, controller = trial.leader(watch), trial.controller()
    view = trial.await_view(watch, lambda seen: 0 in seen.partitions, "the topic is unknown", since_s=0)
    followers = [each for each in view.partitions[0].replicas if each != leader]
    return min(followers, key=lambda each: (each == controller, each))
