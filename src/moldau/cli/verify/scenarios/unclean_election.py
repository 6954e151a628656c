"""A replica that lacks records is all that is left: with unclean elections it leads and they are lost, else it waits.

The scenario is its own proof that a loss is seen: one that finds none where it must be has failed.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from functools import partial

from moldau.cli.verify.clients.verifiable import Sender
from moldau.cli.verify.clusters import asking
from moldau.cli.verify.clusters.hooks import START, STOP
from moldau.cli.verify.clusters.views import View, Watch
from moldau.cli.verify.outcome import Wrong
from moldau.cli.verify.trial import FLUSH_S_MAX, Trial

KEY = "unclean.leader.election.enable"
BY_ITSELF_S = 15.0  # until the election is asked for
OFFLINE_S = 3.0  # for so long the partition without the setting is watched


def perform(trial: Trial) -> None:
    trial.need_brokers(2)
    trial.target.need(STOP, START)
    controller = trial.controller()
    # With three brokers the controller is left alone: this is about replicas.
    leader, stale = sorted(trial.target.nodes, key=lambda each: (each == controller, each))[:2]
    topics = {
        is_allowed: trial.topic(
            "allowed" if is_allowed else "forbidden",
            config={KEY: str(is_allowed).lower(), "min.insync.replicas": "1"},
            assignment=[leader, stale],
        )
        for is_allowed in (True, False)
    }
    senders = {is_allowed: trial.send(topic) for is_allowed, (topic, _) in topics.items()}
    _write_without(trial, stale, topics, senders)
    trial.kill(leader)
    begun_s = time.monotonic()
    trial.start(stale)
    _await_unclean_leader(trial, *topics[True], stale, since_s=begun_s)
    trial.outcome.add("election_ms", (time.monotonic() - begun_s) * 1_000)
    _watch_offline(trial, topics[False][1], stale, since_s=begun_s)
    trial.start(leader)
    for _, watch in topics.values():
        trial.outcome.add("in_sync_ms", trial.await_in_sync(watch))
    _judge(trial, topics, senders)


def _write_without(
    trial: Trial, stale: int, topics: Mapping[bool, tuple[str, Watch]], senders: Mapping[bool, Sender]
) -> None:
    """Records that the replica which is down will never have seen."""
    for sender in senders.values():
        trial.await_acknowledged(sender)
    begun_s = time.monotonic()
    trial.kill(stale)

    def is_out(view: View) -> bool:
        return 0 in view.partitions and stale not in view.partitions[0].isr and view.partitions[0].leader >= 0

    for _, watch in topics.values():
        trial.await_view(watch, is_out, f"broker {stale} does not leave the ISR", since_s=begun_s)
    for sender in senders.values():
        trial.await_acknowledged(sender)
    trial.let_run(trial.wishes.duration_s / 2)
    for sender in senders.values():
        sender.process.stop(FLUSH_S_MAX)


def _await_unclean_leader(trial: Trial, topic: str, watch: Watch, stale: int, *, since_s: float) -> None:
    def leads(view: View) -> bool:
        return 0 in view.partitions and view.partitions[0].leader == stale

    with contextlib.suppress(Wrong):
        trial.until(lambda: watch.first(leads, since_s=since_s) is not None, "", timeout_s=BY_ITSELF_S)
        return
    trial.outcome.notes.append(f"the unclean election did not come by itself within {BY_ITSELF_S:g} s; asked for it")
    trial.ask(partial(asking.elect_unclean, topic=topic), "no unclean election")
    trial.await_view(watch, leads, f"broker {stale} does not lead", since_s=since_s)


def _watch_offline(trial: Trial, watch: Watch, stale: int, *, since_s: float) -> None:
    trial.progress.step("the partition without the setting stays offline")
    trial.let_run(OFFLINE_S)
    led = watch.first(lambda view: 0 in view.partitions and view.partitions[0].leader == stale, since_s=since_s)
    if led is not None:
        trial.outcome.complaints.append(f"broker {stale}, which lacks records, leads though {KEY}=false")


def _judge(trial: Trial, topics: Mapping[bool, tuple[str, Watch]], senders: Mapping[bool, Sender]) -> None:
    trial.judge(topics[False][0], [senders[False]], None)
    acknowledged = senders[True].acknowledged
    loss = trial.counts(topics[True][0], acknowledged, None).lost
    trial.outcome.figures["expected_loss"] = loss
    trial.outcome.notes.append(f"{loss} of {len(acknowledged)} records are lost with {KEY}=true, as expected")
    if not loss:
        trial.outcome.complaints.append(
            f"nothing is lost with {KEY}=true: the election was clean, or a loss is not seen"
        )
