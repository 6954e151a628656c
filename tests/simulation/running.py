"""Running one seed, and saying how to run it again."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from tests.simulation.world import Violation, World

if TYPE_CHECKING:
    from collections.abc import Iterator

IN_MEMORY = Path("/dev/shm")


def simulate(seed: int) -> World:
    """The world at its end. Raises Violation, with the way to see it again."""
    with in_memory_folder() as folder:
        world = World(seed, folder)
        try:
            world.run()
        except Violation as wrong:
            raise Violation(f"seed {seed}: {wrong}\nsee it again with: scripts/simulate --seed {seed}") from wrong
    return world


@contextmanager
def in_memory_folder() -> Iterator[Path]:
    """In memory where there is such a place: nothing is ever synced, but thousands of files are made."""
    folder = Path(mkdtemp(prefix="moldau-simulation-", dir=IN_MEMORY if IN_MEMORY.is_dir() else None))
    try:
        yield folder
    finally:
        rmtree(folder, ignore_errors=True)
