"""A group goes from the classic protocol to the new one and back, one restarted member at a time, under load.

Nothing is lost or read again, no partition has two owners, and Apache Kafka passes the same tests: `--broker apache`.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests import apache_kafka
from tests.rebalance.members import Member
from tests.rebalance.scenario import Scenario

pytestmark = pytest.mark.skipif(
    not apache_kafka.available(), reason="Apache Kafka's client needs java, and Maven the first time"
)

IS_FULL = "MOLDAU_REBALANCE_MATRIX" in os.environ
CLASSIC, CONSUMER = "classic", "consumer"
STAY: dict[str, Any] = {"session_timeout_ms": 30_000}


def restart(
    scenario: Scenario, members: list[Member], place: int, protocol: str, *assignors: str, **options: Any
) -> None:
    """One member of the group comes back with another protocol, and the others share with it."""
    gone = members[place]
    gone.leave()
    members[place] = scenario.start(gone.client, *assignors, protocol=protocol, **options)
    protocols = {member.options["protocol"] for member in members}
    scenario.protocol = CONSUMER if CONSUMER in protocols else CLASSIC
    scenario.settle(*members)


# A Java member takes seconds to start, so that a usual run has fewer of them.
USUAL = [("confluent", "roundrobin", 3), ("java", "cooperative-sticky", 2)]
ALL = [*USUAL, ("java", "range", 3), ("java", "sticky", 3), ("franz-go", "cooperative-sticky", 3)]


@pytest.mark.parametrize(("client", "assignor", "count"), ALL if IS_FULL else USUAL)
def test_a_rolling_upgrade_and_the_way_back(scenario: Scenario, client: str, assignor: str, count: int) -> None:
    scenario.topic("a")
    scenario.topic("b", partitions=3)
    members = [scenario.start(client, assignor) for _ in range(count)]
    assert scenario.settle(*members).assignor == assignor
    for place in range(count):
        restart(scenario, members, place, CONSUMER, "uniform")
    assert scenario.settle(*members).assignor == "uniform"
    for place in range(count):
        restart(scenario, members, place, CLASSIC, assignor)
    assert scenario.settle(*members).assignor == assignor
    scenario.finish()


@pytest.mark.parametrize(("client", "assignor"), [("confluent", "range"), *([("java", "sticky")] if IS_FULL else [])])
def test_static_members_keep_their_places(scenario: Scenario, client: str, assignor: str) -> None:
    """Each comes back under its instance id, and takes the place that it had whichever protocol it speaks."""
    scenario.topic()
    members = [scenario.start(client, assignor, instance=name, **STAY) for name in ("i", "j")]
    scenario.settle(*members)
    for protocol, wanted in ((CONSUMER, "uniform"), (CLASSIC, assignor)):
        for place, name in enumerate(("i", "j")):
            restart(scenario, members, place, protocol, wanted, instance=name, **STAY)
    scenario.finish()


def test_what_an_assignor_tells_members_beyond_partitions_is_not_lost(scenario: Scenario) -> None:
    """librdkafka's cooperative assignor does that, and such a group stays classic, as on Apache Kafka."""
    scenario.topic()
    scenario.may_repeat = True  # the newcomer's failure is what is wanted
    members = [scenario.start("confluent", "cooperative-sticky")]
    scenario.settle(*members)
    # In one round with the first it would be told nothing but partitions, and the newcomer be taken.
    members.append(scenario.start("confluent", "cooperative-sticky"))
    scenario.settle(*members)
    newcomer = scenario.start("confluent", "uniform", protocol=CONSUMER)
    scenario.until(
        lambda: any("group id does not exist" in str(event.content) for event in newcomer.events),
        "the newcomer to be refused",
        failing=[newcomer],
    )
    scenario.protocol = CLASSIC
    scenario.settle(*members)
    scenario.finish()
