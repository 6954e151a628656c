"""Real clients of five languages joining, leaving, crashing and coming back, alone and together, under load.

The tests hold for Apache Kafka too: `--broker apache` shows it. A usual run takes a selection of the clients and
assignors; `scripts/rebalance-matrix` takes all of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests import apache_kafka
from tests.rebalance.members import Member
from tests.rebalance.scenario import Scenario

pytestmark = pytest.mark.skipif(
    not apache_kafka.available(), reason="Apache Kafka's client needs java, and Maven the first time"
)

IS_FULL = "MOLDAU_REBALANCE_MATRIX" in os.environ
CRASH: dict[str, Any] = {"session_timeout_ms": 4_000}
STAY: dict[str, Any] = {"session_timeout_ms": 30_000}


@dataclass(frozen=True, slots=True)
class Kind:
    """A client with an assignor: its own under the classic protocol, the broker's under the new one."""

    client: str
    assignor: str
    protocol: str = "classic"

    @property
    def words(self) -> tuple[str, str]:
        return self.client, self.assignor

    def __str__(self) -> str:
        return f"{self.client}-{self.assignor}" + ("-848" if self.protocol == "consumer" else "")


NEW = "consumer"
KINDS = [
    *(Kind("java", each) for each in ("range", "roundrobin", "sticky", "cooperative-sticky")),
    *(Kind("confluent", each) for each in ("range", "roundrobin", "cooperative-sticky")),
    *(Kind("franz-go", each) for each in ("range", "roundrobin", "sticky", "cooperative-sticky")),
    *(Kind("aiokafka", each) for each in ("range", "roundrobin", "sticky")),
    Kind("kafkajs", "RoundRobinAssigner"),
    *(Kind(client, each, NEW) for client in ("java", "confluent", "franz-go") for each in ("uniform", "range")),
]
# kafkajs knows no static members, and looks for topics of a pattern only when it subscribes.
STATIC = PATTERN = [kind for kind in KINDS if kind.client != "kafkajs"]
# franz-go 1.22 says that it goes for a while without its instance id, which is refused: its session has to end first.
RESTARTING = [kind for kind in STATIC if (kind.client, kind.protocol) != ("franz-go", NEW)]
# As a leader that is back it compares the assignment with what it would have made, without knowing what others own.
LEADS_ANEW = {Kind("franz-go", "cooperative-sticky")}
# A member of the new protocol that is killed keeps its instance id until its session ends.
REVIVED = [kind for kind in STATIC if kind.protocol != NEW]
CUSTOM = ["java", "franz-go", "aiokafka", "kafkajs"]


def chosen(kinds: list[Kind], *usual: str) -> list[object]:
    """All of them for the matrix, else those that are usual."""
    assert set(usual) <= {str(kind) for kind in kinds}
    return [pytest.param(kind, id=str(kind)) for kind in kinds if IS_FULL or str(kind) in usual]


@pytest.mark.parametrize(
    "kind",
    chosen(
        KINDS,
        *("java-cooperative-sticky", "confluent-roundrobin", "franz-go-cooperative-sticky"),
        *("aiokafka-sticky", "kafkajs-RoundRobinAssigner", "java-uniform-848", "confluent-range-848"),
    ),
)
def test_members_join_and_leave(scenario: Scenario, kind: Kind) -> None:
    scenario.topic("a")
    scenario.topic("b", partitions=3)
    first, second = (scenario.start(*kind.words, protocol=kind.protocol) for _ in range(2))
    described = scenario.settle(first, second)
    assert described.assignor == kind.assignor
    third = scenario.start(*kind.words, protocol=kind.protocol)
    scenario.settle(first, second, third)
    first.leave()
    scenario.settle(second, third)
    third.leave()
    scenario.settle(second)
    scenario.finish()


@pytest.mark.parametrize(
    "kind",
    chosen(
        KINDS,
        *("java-range", "confluent-cooperative-sticky", "franz-go-sticky", "aiokafka-roundrobin"),
        *("kafkajs-RoundRobinAssigner", "confluent-uniform-848"),
    ),
)
def test_a_member_that_is_killed_is_replaced(scenario: Scenario, kind: Kind) -> None:
    scenario.topic()
    scenario.may_repeat = True  # what the killed one had read and not committed
    doomed, survivor = (scenario.start(*kind.words, protocol=kind.protocol, **CRASH) for _ in range(2))
    scenario.settle(doomed, survivor)
    doomed.kill()
    scenario.settle(survivor)
    scenario.finish()


def restarts(scenario: Scenario, kind: Kind, *, end: Callable[[Member], None]) -> None:
    """Static members end in that way and come back; all partitions are as before, and the other hears of nothing.

    The first of them leads the group, and when it is back it has to be kept from assigning anew.
    """
    scenario.topic()
    members: dict[str, Member] = {}
    for instance in ("leader", "other"):
        members[instance] = scenario.start(*kind.words, protocol=kind.protocol, instance=instance, **STAY)
        scenario.settle(*members.values())
    generation = scenario.generation()
    for instance, calm in (("other", "leader"), ("leader", "other")):
        if instance == "leader" and kind in LEADS_ANEW:
            continue
        before, changes = members[instance], members[calm].changes
        partitions = before.owned
        end(before)
        again = scenario.start(*kind.words, protocol=kind.protocol, instance=instance, name=before.name, **STAY)
        members[instance] = again
        scenario.settle(*members.values())
        assert (scenario.generation(), again.owned, members[calm].changes) == (generation, partitions, changes)
    scenario.finish()


@pytest.mark.parametrize("kind", chosen(RESTARTING, "java-cooperative-sticky", "franz-go-range", "java-uniform-848"))
def test_a_static_member_restarts_without_a_rebalance(scenario: Scenario, kind: Kind) -> None:
    restarts(scenario, kind, end=Member.leave)


@pytest.mark.parametrize(
    "kind",
    chosen(REVIVED, "confluent-cooperative-sticky", "aiokafka-range"),
)
def test_a_static_member_that_is_killed_comes_back_without_a_rebalance(scenario: Scenario, kind: Kind) -> None:
    scenario.may_repeat = True  # what the killed one had read and not committed
    restarts(scenario, kind, end=Member.kill)


@pytest.mark.parametrize("kind", chosen([Kind("java", "uniform", NEW), Kind("java", "range")], "java-uniform-848"))
def test_two_members_cannot_have_one_instance_id(scenario: Scenario, kind: Kind) -> None:
    """The new protocol refuses the second, the classic one fences the first."""
    scenario.topic()
    # A fenced member learns of it with its next heartbeat or commit, and what it read till then it can't commit.
    scenario.may_repeat = scenario.may_overlap = kind.protocol != NEW
    first = scenario.start(*kind.words, protocol=kind.protocol, instance="i")
    scenario.settle(first)
    second = scenario.start(*kind.words, protocol=kind.protocol, instance="i", name=first.name)
    loser, winner = (second, first) if kind.protocol == NEW else (first, second)
    scenario.until(lambda: loser.has_ended, "one of them to end", failing=[loser])
    assert ("UnreleasedInstanceId" if kind.protocol == NEW else "FencedInstanceId") in loser.error_text()
    scenario.settle(winner)
    scenario.finish()


@pytest.mark.parametrize(
    "kind",
    chosen(
        PATTERN,
        *("java-range", "confluent-cooperative-sticky", "franz-go-roundrobin", "aiokafka-range"),
        *("confluent-uniform-848",),
    ),
)
def test_a_pattern_finds_a_new_topic(scenario: Scenario, kind: Kind) -> None:
    scenario.topic("a", partitions=2)
    pattern = f"{scenario.prefix}-.*"
    first, second = (
        scenario.start(*kind.words, protocol=kind.protocol, pattern=pattern, topics=None) for _ in range(2)
    )
    scenario.settle(first, second)
    scenario.topic("b", partitions=2)
    scenario.settle(first, second)
    scenario.finish()


@pytest.mark.parametrize(
    ("low", "high"),
    [(low, high) for low in CUSTOM for high in CUSTOM] if IS_FULL else [("java", "franz-go"), ("kafkajs", "aiokafka")],
)
def test_an_assignor_that_no_library_has(scenario: Scenario, low: str, high: str) -> None:
    """Whichever library leads, it gives all to the highest number, which travels as user data of a subscription."""
    scenario.topic()
    lower = scenario.start(low, "priority", priority=1)
    assert scenario.settle(lower).assignor == "priority"
    higher = scenario.start(high, "priority", priority=2)
    scenario.settle(higher, idle=[lower])
    higher.leave()
    scenario.settle(lower)
    scenario.finish()


MIXED = [
    ("range", ["java", "confluent", "franz-go", "aiokafka"]),
    ("roundrobin", ["confluent", "aiokafka", "franz-go", "java"]),
    ("sticky", ["franz-go", "java", "aiokafka"]),
    ("cooperative-sticky", ["franz-go", "java", "confluent"]),
    ("uniform", ["java", "confluent", "franz-go"]),
]


@pytest.mark.parametrize(("assignor", "clients"), MIXED if IS_FULL else [MIXED[0], MIXED[3]])
def test_clients_of_several_languages_share_a_group(scenario: Scenario, assignor: str, clients: list[str]) -> None:
    scenario.topic("a")
    scenario.topic("b", partitions=4)
    protocol = NEW if assignor == "uniform" else "classic"
    members = [scenario.start(client, assignor, protocol=protocol, **CRASH) for client in clients]
    scenario.settle(*members)
    members.pop(0).leave()
    scenario.settle(*members)
    scenario.may_repeat = True  # what the killed one had read and not committed
    members.pop(0).kill()
    scenario.settle(*members)
    scenario.finish()


def test_the_assignor_is_one_that_all_members_know(scenario: Scenario) -> None:
    """A group moves to another assignor by members that know both, once the last who knows only the old one is gone."""
    scenario.topic()
    old = scenario.start("confluent", "range")
    assert scenario.settle(old).assignor == "range"
    both = [
        scenario.start("franz-go", "cooperative-sticky", "range"),
        scenario.start("java", "cooperative-sticky", "range"),
    ]
    assert scenario.settle(old, *both).assignor == "range"
    old.leave()
    assert scenario.settle(*both).assignor == "cooperative-sticky"
    scenario.finish()
