"""The same requests to Apache Kafka 4.3.1 and to us: the decoded answers agree, but for the table of differences."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.differential.conftest import Address
from tests.differential.differences import DIFFERENCES, Difference, disagreements
from tests.differential.scenarios import (
    client_metrics,
    client_quotas,
    cluster,
    configs,
    consumer_groups,
    fetch,
    fetch_sessions,
    group_configs,
    groups,
    idempotence,
    internal_topics,
    malformed,
    migration,
    offsets,
    produce,
    record_batches,
    topics,
    transactions,
)
from tests.differential.world import Step, World

SHOWN_MAX = 40

Scenario = Callable[[World], None]

MODULES = (
    produce,
    record_batches,
    idempotence,
    internal_topics,
    fetch,
    fetch_sessions,
    offsets,
    cluster,
    topics,
    configs,
    group_configs,
    groups,
    consumer_groups,
    transactions,
    migration,
    malformed,
    client_quotas,
    client_metrics,
)
SCENARIOS: dict[str, Scenario] = {
    f"{module.__name__.rpartition('.')[2]}.{scenario.__name__}": scenario
    for module in MODULES
    for scenario in module.SCENARIOS
}


def transcript(name: str, address: Address) -> list[Step]:
    world = World(address, name.replace("_", "-").replace(".", "-"))
    try:
        SCENARIOS[name](world)
    finally:
        world.close()
    return world.transcript


@pytest.mark.xdist_group("differential")
@pytest.mark.parametrize("name", SCENARIOS)
def test_same_answers(name: str, judge: Address, candidate: Address, broker_kind: str) -> None:
    theirs, ours = transcript(name, judge), transcript(name, candidate)
    found = list(disagreements(theirs, ours))
    rows = DIFFERENCES if broker_kind == "moldau" else ()
    surprises = [one for one in found if not any(row.covers(name, one) for row in rows)]
    shown = "\n".join(map(str, surprises[:SHOWN_MAX]))
    assert not surprises, f"{len(surprises)} fields differ\n{shown}"
    stale = [row for row in rows if row.scenario == name and not any(row.covers(name, one) for one in found)]
    assert not stale, f"these differences are gone, so their rows must go: {stale}"


@pytest.mark.parametrize("row", DIFFERENCES, ids=lambda row: row.scenario)
def test_every_difference_names_a_scenario(row: Difference) -> None:
    assert row.scenario in {"*", *SCENARIOS}
    assert row.reason.endswith(".")
