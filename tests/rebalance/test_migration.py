"""A group goes from the classic protocol to the new one and back, one restarted member at a time, under load.

Nothing is lost or read again, no partition has two owners, and Apache Kafka passes the same tests: `--broker apache`.
"""

from __future__ import annotations

import os

import pytest

from tests import apache_kafka
from tests.rebalance.members import Member
from tests.rebalance.scenario import Scenario

pytestmark = pytest.mark.skipif(
    not apache_kafka.available(), reason="Apache Kafka's client needs java, and Maven the first time"
)

IS_FULL = "MOLDAU_REBALANCE_MATRIX" in os.environ
CLASSIC, CONSUMER = "classic", "consumer"


def restart(scenario: Scenario, members: list[Member], place: int, protocol: str, *assignors: str) -> None:
    """One member of the group comes back with another protocol, and the others share with it."""
    gone = members[place]
    gone.leave()
    members[place] = scenario.start(gone.client, *assignors, protocol=protocol)
    protocols = {member.options["protocol"] for member in members}
    scenario.protocol = CONSUMER if CONSUMER in protocols else CLASSIC
    scenario.settle(*members)


# A Java member takes seconds to start, so that a usual run has fewer of them.
USUAL = [("confluent", "roundrobin", 3), ("confluent", "cooperative-sticky", 3), ("java", "cooperative-sticky", 2)]
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
