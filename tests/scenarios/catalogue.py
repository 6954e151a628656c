"""All scenarios by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from tests.scenarios import losing_directories
from tests.scenarios.clients import CLASSIC, CLIENTS, CONSUMER
from tests.scenarios.copying import BROKERS, COPIERS, copy
from tests.scenarios.grouping import rolling_bounces
from tests.scenarios.losing_directories import lose_a_directory
from tests.scenarios.replicating import BOUNCES, cut_off, end_or_bounce, follower_falls_behind, paused
from tests.scenarios.streaming import count_words
from tests.scenarios.trial import CONTROLLER, LEADER, Trial

ORDERED_MESSAGES = 33_333
WAYS = {"clean": True, "hard": False}


@dataclass(frozen=True)
class Scenario:
    name: str
    perform: Callable[[Trial], None]
    log_directories: int = 1
    settings: dict[str, str] = field(default_factory=dict)


def scenarios() -> list[Scenario]:
    return [*_replication(), *_transactions(), *_log_directories(), *_groups(), *_streams()]


def _replication() -> Iterator[Scenario]:
    for client in CLIENTS:
        for role in (LEADER, CONTROLLER):
            for way, clean in WAYS.items():
                once = partial(end_or_bounce, client=client, role=role, clean=clean)
                yield Scenario(f"replication: {way} shutdown of the {role}, {client}", once)
                often = partial(once, bounces=BOUNCES)
                yield Scenario(f"replication: {way} bounces of the {role}, {client}", often)
        for name, trouble in (("cut off", cut_off), ("paused", paused)):
            behind = partial(follower_falls_behind, client=client, trouble=trouble)
            yield Scenario(f"follower {name}, {client}", behind)


def _transactions() -> Iterator[Scenario]:
    for target in (BROKERS, COPIERS):
        for way, clean in WAYS.items():
            yield Scenario(f"transactions: {way} bounces of {target}", partial(copy, target=target, clean=clean))
            ordered = partial(copy, target=target, clean=clean, partitions=1, messages=ORDERED_MESSAGES)
            yield Scenario(f"transactions: {way} bounces of {target}, one partition", ordered)


def _log_directories() -> Iterator[Scenario]:
    for client in CLIENTS:
        for role in (losing_directories.LEADER, losing_directories.FOLLOWER):
            perform = partial(lose_a_directory, client=client, role=role)
            name = f"log directory of the {role} fails, {client}"
            yield Scenario(name, perform, log_directories=2, settings=losing_directories.SETTINGS)


def _groups() -> Iterator[Scenario]:
    for client in CLIENTS:
        for protocol in (CLASSIC, CONSUMER):
            perform = partial(rolling_bounces, client=client, protocol=protocol)
            yield Scenario(f"group: rolling bounces, {protocol}, {client}", perform)


def _streams() -> Iterator[Scenario]:
    for way, clean in WAYS.items():
        yield Scenario(f"streams: {way} rolling bounces", partial(count_words, clean=clean))
