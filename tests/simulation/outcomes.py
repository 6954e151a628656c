"""What becomes of one seed, in a module of its own: other processes import it by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from tests.simulation import running
from tests.simulation.cluster import running as cluster_running
from tests.simulation.cluster.world import Violation as ClusterViolation
from tests.simulation.world import Violation


class Outcome(NamedTuple):
    """What became of one seed: some figures, or what went wrong."""

    seed: int
    figures: Mapping[str, int]
    wrong: str | None = None


def of_coordinators(seed: int) -> Outcome:
    try:
        world = running.simulate(seed)
    except Violation as wrong:
        return Outcome(seed, {}, str(wrong))
    return Outcome(seed, {"crashes": world.crashes, "transactions": len(world.attempted)})


def of_cluster(seed: int) -> Outcome:
    try:
        world = cluster_running.simulate(seed)
    except ClusterViolation as wrong:
        return Outcome(seed, {}, str(wrong))
    figures = {
        "faults": world.faults.count,
        "elections": world.history.elections,
        "records acknowledged": len(world.history.acknowledged),
    }
    return Outcome(seed, figures)


WORLDS: Mapping[str, Callable[[int], Outcome]] = MappingProxyType(
    {"coordinators": of_coordinators, "cluster": of_cluster}
)
