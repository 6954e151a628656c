"""Running one seed of the cluster, and saying how to run it again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from moldau.broker.topics import reconciliation
from moldau.controller import log_length
from moldau.node.storage import kept_logs
from moldau.replication.partition import Partition
from tests.simulation.cluster.disk import Disk, syncs_noted
from tests.simulation.cluster.node import Node
from tests.simulation.cluster.world import Violation, World
from tests.simulation.loop import STAGE
from tests.simulation.running import in_memory_folder


def simulate(seed: int, befall: Callable[[World], Awaitable[None]] | None = None) -> World:
    """The world at its end. Raises Violation, with the way to see it again.

    What befalls it is the seed's choice, unless something is given.
    """
    with in_memory_folder() as folder:
        world = World(seed, folder)
        if befall is not None:
            world.befall = partial(befall, world)
        try:
            with _surroundings(world):
                world.run()
        except Violation as wrong:
            steps = "\n".join(world.steps)
            raise Violation(
                f"seed {seed}: {wrong}\n{steps}\nsee it again with: scripts/simulate cluster --seed {seed}"
            ) from wrong
    return world


@contextmanager
def _surroundings(world: World) -> Iterator[None]:
    """Time, disks and machines are the simulated ones, and whoever takes records for committed is looked at."""

    def disk_of(path: str) -> Disk | None:
        return next((each.disk for each in world.machines.values() if each.disk.owns(path)), None)

    def boot_id() -> bytes:
        node = STAGE.get()
        assert isinstance(node, Node), "only a broker asks when its machine was started"
        return node.boot_id

    with ExitStack() as all_of:
        all_of.enter_context(syncs_noted(disk_of))
        all_of.enter_context(patch.object(reconciliation, "monotonic", world.loop.time))
        all_of.enter_context(patch.object(kept_logs, "BOOT_ID", SimpleNamespace(read_bytes=boot_id)))
        all_of.enter_context(patch.object(log_length, "ENTRIES_PER_SNAPSHOT_MIN", world.random.choice([8, 40, 1_000])))
        all_of.enter_context(_watched(world))
        yield


@contextmanager
def _watched(world: World) -> Iterator[None]:
    advance, follow, take = Partition._advance, Partition.follow_high_watermark, Partition._take_leadership

    def advancing(self: Partition, *args: Any) -> None:
        advance(self, *args)
        if _is_alive():
            world.on_high_watermark(self)

    def following(self: Partition, *args: Any) -> None:
        follow(self, *args)
        if _is_alive():
            world.on_high_watermark(self)

    def taking(self: Partition, *args: Any) -> None:
        take(self, *args)
        if self.is_leader and _is_alive():
            world.on_leading(self)

    with (
        patch.object(Partition, "_advance", advancing),
        patch.object(Partition, "follow_high_watermark", following),
        patch.object(Partition, "_take_leadership", taking),
    ):
        yield


def _is_alive() -> bool:
    node = STAGE.get()
    return isinstance(node, Node) and not node.is_dead
