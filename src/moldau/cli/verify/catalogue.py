"""All scenarios by their names, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from moldau.cli.verify.scenarios import (
    client_lost,
    controller_election,
    leader_election,
    preferred_election,
    rolling_restart,
    rolling_restart_consumers,
    rolling_restart_producers,
    stalling,
    unclean_election,
)
from moldau.cli.verify.trial import Trial


class Scenario(NamedTuple):
    name: str
    summary: str
    perform: Callable[[Trial], None]
    hooks: str = ""
    """What a given cluster needs hands for."""


SCENARIOS = (
    Scenario("leader-election", "kill -9 the leader of a partition: how long until another one takes records",
             leader_election.perform, "--stop-broker, --start-broker"),
    Scenario("preferred-election", "move a partition's leader on purpose, and back", preferred_election.perform),
    Scenario("controller-election", "kill -9 the controller: how long until another one makes a topic",
             controller_election.perform, "--stop-broker, --start-broker"),
    Scenario("rolling-restart", "restart each broker cleanly, waiting for the ISR in between",
             rolling_restart.perform, "--restart-broker"),
    Scenario("rolling-restart-consumers", "restart each member of a group: classic, static and consumer protocol",
             rolling_restart_consumers.perform),
    Scenario("rolling-restart-producers", "stop and kill producers: idempotent, and copying in transactions",
             rolling_restart_producers.perform),
    Scenario("unclean-election", "elect a replica that lacks records: what is lost with it, and nothing without",
             unclean_election.perform, "--stop-broker, --start-broker"),
    Scenario("client-lost", "kill -9 a consumer, and a producer in a transaction: who waits, and for how long",
             client_lost.perform),
    Scenario("paused-broker", "SIGSTOP a follower: the ISR shrinks, acknowledgements go on, the ISR returns",
             stalling.pause_broker, "--pause-broker, --resume-broker"),
    Scenario("slow-disk", "delay the writes and syncs of a follower: acknowledgements go on, nothing is lost",
             stalling.slow_disk, "--slow-disk, --heal-disk"),
)  # fmt: skip
BY_NAME = {each.name: each for each in SCENARIOS}
