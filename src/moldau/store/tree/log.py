"""The metadata log: one node for each entry, a head that says where it ends, and a snapshot in parts.

An entry and the new head are one transaction, behind the checks of the controller's fence. What is larger than a
request may be is laid down in parts first, which nobody looks at before the transaction that names them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import zlib
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace

from moldau.store.store import CorruptStore, MetadataEntry, StoreError, Tail
from moldau.store.tree import layout
from moldau.store.tree.client import (
    Change,
    Create,
    Delete,
    NoNode,
    Operation,
    Refusal,
    Signal,
    TransactionRefused,
    TreeClient,
    Unanswered,
    patiently,
)
from moldau.store.tree.elections import Fence
from moldau.store.tree.layout import Entry, Head, SnapshotReference

AT_ONCE_MAX = 64  # entries that are asked for, or removed, at once: of the largest inline ones that is 32 MB

LOGGER = logging.getLogger(__name__)


class MetadataLog:
    def __init__(self, client: TreeClient) -> None:
        self._client = client
        self._changed = Signal()
        self._writing = asyncio.Lock()
        self._head = Head()  # as its only writer knows it
        self._removing: asyncio.Task[None] | None = None

    async def prepare(self) -> None:
        """Make what a new cluster lacks. /moldau comes first, so what lacks it beside other nodes is not ours."""
        others = [await self._client.find(path) for path in (layout.BROKER_IDS, layout.CONTROLLER_EPOCH)]
        if any(others) and await self._client.find(layout.OURS) is None:
            where = f"{self._client.service} at {self._client.servers}"
            raise StoreError(f"{where} holds a cluster of another system; give this one a chroot")
        await self._client.prepare(layout.OURS)
        nodes = {
            layout.HEAD: Head().encode(),
            layout.ENTRIES: b"",
            layout.PARTS: b"",
            layout.SNAPSHOTS: b"",
            layout.CONTROLLER_EPOCH: layout.encode_epoch(0),
            layout.BROKER_IDS.rpartition("/")[0]: b"",
            layout.BROKER_IDS: b"",
            layout.CLUSTER_ID.rpartition("/")[0]: b"",
        }
        for path, data in nodes.items():
            await self._create_if_missing(path, data)

    async def lead(self) -> None:
        """After an election: nobody else can append any more, so the head is what it will be until we do."""
        async with self._writing:
            self._head = await self._read_head()

    async def append(self, payload: bytes, fence: Fence) -> int:
        async with self._writing:
            entry = Entry.of(payload, epoch=fence.epoch, tag=secrets.token_bytes(layout.TAG_BYTES))
            while True:
                position = self._head.end + 1
                if entry.parts:
                    parts = layout.part_paths(layout.PARTS, position, entry.tag, entry.parts)
                    await self._put_parts(parts, layout.cut(payload), fence)
                head = replace(self._head, end=position)
                if await self._put_entry(position, entry, head, fence):
                    self._head = head
                    return position
                # An append of ours that nobody waited for took the place.
                self._head = await self._read_head()

    async def snapshot(self, payload: bytes, *, position: int, fence: Fence) -> None:
        async with self._writing:
            tag, parts = secrets.token_bytes(layout.TAG_BYTES), layout.cut(payload)
            paths = layout.part_paths(layout.SNAPSHOTS, position, tag, len(parts))
            await self._put_parts(paths, parts, fence)
            reference = SnapshotReference(position, tag, len(parts), zlib.crc32(payload))
            replaced = range(self._head.first, min(position, self._head.end) + 1)
            head = replace(
                self._head,
                end=max(position, self._head.end),
                first=self._head.first if replaced else max(self._head.first, position + 1),  # a log that was moved
                snapshot=reference,
            )
            await self._commit_fenced(fence, Change(layout.HEAD, head.encode()))
            self._head = head
        if self._removing is None:  # else what is left over is removed with the next one
            removal = self._remove_replaced(replaced, reference, fence)
            self._removing = asyncio.create_task(removal, name="metadata-store-removal")

    async def read(self, position: int) -> Tail:
        await self._client.catch_up()
        head = await self._read_head()
        while True:
            try:
                return await self._read(head, position)
            except NoNode as wrong:
                # A snapshot replaced what was to be read. If there was none, something is missing.
                newer = await self._read_head()
                if newer == head:
                    raise CorruptStore(
                        f"the metadata store's {layout.HEAD} names entries that are not there"
                    ) from wrong
                head = newer

    async def watch(self, position: int) -> AsyncIterator[int]:
        while True:
            changed = self._changed.next()
            head = await patiently(lambda: self._read_head(watch=self._changed))
            if head.end > position:
                position = head.end
                yield position
            await changed.wait()

    def close(self) -> None:
        if self._removing is not None:
            self._removing.cancel()
        self._changed.fire()

    async def _read_head(self, *, watch: Signal | None = None) -> Head:
        return Head.decode((await self._client.get(layout.HEAD, watch=watch)).data)

    async def _read(self, head: Head, position: int) -> Tail:
        reference, snapshot = head.snapshot, None
        if reference is not None and reference.position > position:
            paths = layout.part_paths(layout.SNAPSHOTS, reference.position, reference.tag, reference.parts)
            payload = layout.joined("snapshot", await self._contents(paths), reference.checksum)
            snapshot = MetadataEntry(reference.position, payload)
            position = reference.position
        entries: list[MetadataEntry] = []
        for positions in _at_once(range(position + 1, head.end + 1)):
            entries += await asyncio.gather(*map(self._read_entry, positions))
        return Tail(snapshot, entries)

    async def _read_entry(self, position: int) -> MetadataEntry:
        path = layout.entry_path(position)
        entry = Entry.decode(path, (await self._client.get(path)).data)
        parts = [entry.inline]
        if entry.parts:
            parts = await self._contents(layout.part_paths(layout.PARTS, position, entry.tag, entry.parts))
        return MetadataEntry(position, layout.joined(f"entry {position}", parts, entry.checksum))

    async def _contents(self, paths: Sequence[str]) -> list[bytes]:
        return [(await self._client.get(path)).data for path in paths]

    async def _put_parts(self, paths: Sequence[str], parts: Sequence[bytes], fence: Fence) -> None:
        for path, part in zip(paths, parts, strict=True):
            await self._commit_fenced(fence, Create(path, part), done=Refusal.EXISTS)

    async def _put_entry(self, position: int, entry: Entry, head: Head, fence: Fence) -> bool:
        """False when the place is taken. An answer that was lost is looked up: the tag tells whose entry is there."""
        operations = [
            *fence.operations(),
            Create(layout.entry_path(position), entry.encode()),
            Change(layout.HEAD, head.encode()),
        ]
        while True:
            try:
                await self._client.connected()
                await self._client.commit_once(*operations)
                return True
            except TransactionRefused as refusal:
                if await self._tag(position) == entry.tag:
                    return True
                fenced = fence.error(refusal)
                if fenced is not None:
                    raise fenced from refusal
                return False
            except Unanswered:
                continue

    async def _tag(self, position: int) -> bytes | None:
        path = layout.entry_path(position)
        await self._client.catch_up()
        found = await self._client.find(path)
        return found and Entry.decode(path, found.data).tag

    async def _commit_fenced(self, fence: Fence, operation: Operation, *, done: Refusal | None = None) -> None:
        """`done` is what the operation is refused for when it was carried out before, and its answer was lost."""
        try:
            await self._client.commit(*fence.operations(), operation)
        except TransactionRefused as refusal:
            fenced = fence.error(refusal)
            if fenced is not None or refusal.reason is not done:
                where = f"{self._client.service} at {self._client.servers}"
                raise fenced or StoreError(f"{where} refused a transaction: {refusal}") from refusal

    async def _remove_replaced(self, entries: range, snapshot: SnapshotReference, fence: Fence) -> None:
        """While the controller goes on: of thousands of entries it takes seconds, in which a leader may have to be
        elected. What is left over is removed with the next snapshot."""
        try:
            await self._remove(entries, snapshot, fence)
            async with self._writing:
                self._head = replace(self._head, first=max(self._head.first, snapshot.position + 1))
        except StoreError as wrong:
            LOGGER.debug("what snapshot %d replaced is not removed yet: %s", snapshot.position, wrong)
        except Exception:
            LOGGER.exception("what snapshot %d replaced is not removed yet", snapshot.position)
        finally:
            self._removing = None

    async def _remove(self, entries: range, snapshot: SnapshotReference, fence: Fence) -> None:
        """Entries may be removed by anybody, at any time; parts only by the controller: another may be writing some."""
        for positions in _at_once(entries):
            await self._remove_entries(positions)
        # A later snapshot, which may be under way, has a position of its own, or the same.
        for folder, end in ((layout.PARTS, snapshot.position + 1), (layout.SNAPSHOTS, snapshot.position)):
            for name in await self._client.children(folder):
                if layout.position_of(name) < end:
                    await self._commit_fenced(fence, Delete(f"{folder}/{name}"), done=Refusal.MISSING)

    async def _remove_entries(self, positions: range) -> None:
        removals = [Delete(layout.entry_path(position)) for position in positions]
        try:
            await self._client.commit(*removals)
        except TransactionRefused:  # some of them were removed before
            for removal in removals:
                with contextlib.suppress(TransactionRefused):
                    await self._client.commit(removal)

    async def _create_if_missing(self, path: str, data: bytes) -> None:
        with contextlib.suppress(TransactionRefused):
            await self._client.commit(Create(path, data))


def _at_once(positions: range) -> Iterator[range]:
    return (positions[at : at + AT_ONCE_MAX] for at in range(0, len(positions), AT_ONCE_MAX))
