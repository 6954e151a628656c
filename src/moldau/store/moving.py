"""A cluster's metadata goes from one store to another, entry by entry, while no broker runs."""

from __future__ import annotations

from dataclasses import dataclass

from moldau.store.store import START, MetadataEntry, MetadataStore, Registration, StoreError, Tail

MOVER_ID = 2**31 - 1  # of no broker: both stores take whoever moves them for the controller, and nobody else writes


@dataclass(frozen=True, slots=True)
class Moved:
    position: int
    entries: int  # that were not there from an attempt before


async def move(source: MetadataStore, target: MetadataStore) -> Moved:
    """Positions stay what they are. A move that was interrupted goes on where it ended.

    Raises StoreError when a broker runs, when there is nothing to move, and when the target has other metadata.
    """
    await _take(source)
    epoch = await _take(target)
    wanted, there = await source.read(START), await target.read(START)
    end = wanted.end
    if end is None:
        raise StoreError("there is no metadata to move")
    _check_prefix(wanted, there)
    missing = 0
    if wanted.snapshot and there.snapshot is None:
        await target.snapshot(wanted.snapshot.payload, position=wanted.snapshot.position, controller_epoch=epoch)
        missing += 1
    for entry in wanted.entries[len(there.entries) :]:
        position = await target.append(entry.payload, controller_epoch=epoch)
        assert position == entry.position, "nobody else can write, and what is there was compared"
        missing += 1
    if await target.read(START) != wanted:
        raise StoreError("the metadata was moved, and what is read back differs")
    return Moved(end, missing)


async def _take(store: MetadataStore) -> int:
    """The epoch, as whose controller nobody else can write."""
    running = [each.broker_id for each in await store.registrations() if each.broker_id != MOVER_ID]
    if running:
        raise StoreError(f"broker {running[0]} is running; stop all brokers first")
    await store.register(Registration(MOVER_ID, b""))
    leadership = await store.elect(MOVER_ID)
    if leadership.broker_id != MOVER_ID:
        raise StoreError(f"broker {leadership.broker_id} is running; stop all brokers first")
    return leadership.epoch


def _check_prefix(wanted: Tail, there: Tail) -> None:
    begun: list[MetadataEntry] = [*([there.snapshot] if there.snapshot else []), *there.entries]
    whole = [*([wanted.snapshot] if wanted.snapshot else []), *wanted.entries]
    if begun != whole[: len(begun)]:
        raise StoreError("the target holds other metadata already; choose an empty one")
