"""Metadata that changes its store, between every two kinds."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.store.moving import MOVER_ID, Moved, move
from moldau.store.store import START, MetadataEntry, Registration, StoreError, Tail
from tests.store.kinds import Kind, SqliteKind, lead, run

pytestmark = pytest.mark.xdist_group("store")

LARGE = bytes(1_500_000)


@pytest.fixture
def source(tmp_path: Path) -> SqliteKind:
    return SqliteKind(tmp_path / "source.db")


async def fill(kind: SqliteKind) -> Tail:
    async with kind.opened() as store:
        epoch = await lead(store, 1)
        for text in (b"a", b"b", b"c", LARGE, b"e"):
            await store.append(text, controller_epoch=epoch)
        await store.snapshot(LARGE + b"abc", position=3, controller_epoch=epoch)
        return await store.read(START)


def test_what_was_moved_is_what_was_there(source: SqliteKind, kind: Kind) -> None:
    async def test() -> None:
        written = await fill(source)
        async with source.opened() as old, kind.opened() as new:
            assert await move(old, new) == Moved(5, 3)
        async with kind.opened() as new:
            assert await new.read(START) == written
            assert await new.registrations() == []
            epoch = await lead(new, 1)
            assert await new.append(b"f", controller_epoch=epoch) == 6

    run(test)


def test_a_move_that_was_interrupted_goes_on(source: SqliteKind, kind: Kind) -> None:
    async def test() -> None:
        written = await fill(source)
        assert written.snapshot is not None
        async with kind.opened() as new:
            epoch = await lead(new, MOVER_ID)
            await new.snapshot(written.snapshot.payload, position=3, controller_epoch=epoch)
            await new.append(LARGE, controller_epoch=epoch)
        async with source.opened() as old, kind.opened() as new:
            assert await move(old, new) == Moved(5, 1)
            assert await new.read(START) == written
        async with source.opened() as old, kind.opened() as new:
            assert await move(old, new) == Moved(5, 0)

    run(test)


def test_metadata_of_another_cluster_is_left_alone(source: SqliteKind, kind: Kind) -> None:
    async def test() -> None:
        await fill(source)
        async with kind.opened() as new:
            epoch = await lead(new, 1)
            await new.append(b"another", controller_epoch=epoch)
        async with source.opened() as old, kind.opened() as new:
            with pytest.raises(StoreError, match="holds other metadata already"):
                await move(old, new)
            assert await new.read(START) == Tail(None, [MetadataEntry(1, b"another")])

    run(test)


def test_nothing_is_moved_while_a_broker_runs(source: SqliteKind, kind: Kind) -> None:
    async def test() -> None:
        await fill(source)
        async with source.opened() as old, kind.opened() as new, kind.opened() as broker:
            await broker.register(Registration(4, b""))
            with pytest.raises(StoreError, match="broker 4 is running; stop all brokers first"):
                await move(old, new)
            assert (await new.read(START)).end is None

    run(test)


def test_an_empty_store_is_not_moved(source: SqliteKind, kind: Kind) -> None:
    async def test() -> None:
        async with source.opened() as old, kind.opened() as new:
            with pytest.raises(StoreError, match="there is no metadata to move"):
                await move(old, new)

    run(test)
