"""What was committed, acknowledged and led, as it happened, and what may never be seen in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from zlib import crc32

from moldau.controller.image import ClusterImage, PartitionImage
from moldau.core.ids import NO_LEADER
from moldau.log.partition_log import PartitionLog
from moldau.replication.partition import Partition
from moldau.wire.batch import batches, records

BYTES_MAX = 1 << 20

Violate = Callable[[str], None]


def stored(log: PartitionLog, start: int, end: int) -> Iterator[tuple[int, int, memoryview]]:
    """The batches of a log from an offset on: their first offsets, the ones after their last, and their bytes."""
    offset = start
    while offset < end:
        view = memoryview(log.read(offset, bytes_max=BYTES_MAX, end=end, one_batch=True).read())  # type: ignore[arg-type]
        before = offset
        for at, header in batches(view, partial_tail=True):
            offset = header.next_offset
            yield header.base_offset, offset, view[at : at + header.length_bytes]
        if offset == before:
            return


def values_of(batch: memoryview) -> list[tuple[int, bytes]]:
    return [(each.offset, bytes(each.value or b"")) for each in records(batch, decompressed_bytes_max=BYTES_MAX)]


class History:
    def __init__(self, violate: Violate, *, syncs_each: bool) -> None:
        """`syncs_each`: no loss of power takes away what was acknowledged, so that the last leader has all of it."""
        self.digest = 0
        self._syncs_each = syncs_each
        self.committed: dict[int, dict[int, tuple[int, int]]] = {}
        """Of each partition and first offset: the offset after the batch, and what identifies its bytes."""
        self.values: dict[int, dict[int, bytes]] = {}
        self.ends: dict[int, int] = {}
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self.elections = 0
        self._leaders: dict[tuple[int, int], tuple[int, int]] = {}
        self._violate = violate
        self._image: ClusterImage | None = None

    def note(self, *what: object) -> None:
        self.digest = crc32(repr(what).encode(), self.digest)

    def on_committed(self, broker_id: int, partition: Partition, start: int) -> None:
        """A replica takes what is before its high watermark for committed: all must take the same for it."""
        index, log = partition.index, partition.log
        known = self.committed.setdefault(index, {})
        values = self.values.setdefault(index, {})
        for first, after, batch in stored(log, max(start, log.log_start_offset), partition.high_watermark):
            found = (after, crc32(batch))
            other = known.setdefault(first, found)
            if other is found:
                values.update(values_of(batch))
                self.ends[index] = max(self.ends.get(index, 0), after)
                self.note("committed", index, first, after)
            elif other != found:
                self._violate(f"{index}@{first} is committed as {other} and, on broker {broker_id}, as {found}")

    def on_leading(self, broker_id: int, life: int, partition: Partition) -> None:
        place = (partition.index, partition.leader_epoch)
        leader = self._leaders.setdefault(place, (broker_id, life))
        self.note("leads", place, broker_id)
        if leader != (broker_id, life):
            self._violate(f"epoch {place[1]} of {place[0]} is led by {leader} and by {(broker_id, life)}")

    def on_acknowledged(self, index: int, offset: int, values: Iterable[bytes]) -> None:
        for number, value in enumerate(values):
            where = (index, offset + number)
            self.acknowledged[where] = value
            self.note("acknowledged", where)
            found = self.values.get(index, {}).get(offset + number)
            if found != value:
                self._violate(f"{where} was acknowledged as {value!r}, but {found!r} is committed there")

    def has(self, index: int, values: Sequence[bytes]) -> bool:
        """Whether they are committed."""
        found = set(self.values.get(index, {}).values())
        return found.issuperset(values)

    def on_read(self, index: int, batch: memoryview, first: int, after: int) -> None:
        """By a consumer, of any replica."""
        known = self.committed.get(index, {}).get(first)
        if known is None:
            self._violate(f"{index}@{first} was read before it was committed")
        elif known != (after, crc32(batch)):
            self._violate(f"{index}@{first} was read as something else than what was committed")

    def on_image(self, image: ClusterImage) -> None:
        """What the controller decided: epochs rise, and who leads had everything."""
        before, self._image = self._image, image
        if before is None:
            return
        for name, topic in image.topics.items():
            known = before.topics.get(name)
            for index, state in enumerate(topic.partitions if known is not None else ()):
                if known is not None and state is not known.partitions[index]:
                    self._check_change(index, known.partitions[index], state)

    def _check_change(self, index: int, before: PartitionImage, after: PartitionImage) -> None:
        if after.leader_epoch < before.leader_epoch or after.partition_epoch <= before.partition_epoch:
            self._violate(f"epochs of {index} go back from {before} to {after}")
        if after.leader in (before.leader, NO_LEADER):
            return
        self.elections += 1
        joined = after.isr if len(after.isr) > 1 else ()  # one that joined may lead by the same change
        last = before.last_known_elr if self._syncs_each else ()
        if after.leader not in (*before.isr, *before.elr, *joined, *last):
            self._violate(f"{index} is led by {after.leader}, which may lack records: {before} became {after}")

    def check_end(self, index: int, log: PartitionLog, sent_once: Iterable[bytes]) -> None:
        """Everything that was ever acknowledged is in a log that has healed, and nothing twice that must not be."""
        found = {offset: value for _, _, batch in stored(log, 0, log.end_offset) for offset, value in values_of(batch)}
        for (partition, offset), value in self.acknowledged.items():
            if partition == index and found.get(offset) != value:
                self._violate(f"{index}@{offset} was acknowledged as {value!r} and is {found.get(offset)!r}")
        for offset, value in self.values.get(index, {}).items():
            if found.get(offset) != value:
                self._violate(f"{index}@{offset} was committed as {value!r} and is {found.get(offset)!r}")
        once = [value for value in found.values() if value.startswith(b"once")]
        if len(once) != len(set(once)):
            self._violate(f"{index} has values twice: {sorted(each for each in once if once.count(each) > 1)[:5]}")
        missing = set(sent_once) - set(once)
        if missing:
            self._violate(f"{index} lacks {sorted(missing)[:5]}, which were acknowledged")
        for producer in sorted({value.split(b" ")[1] for value in once}):
            numbers = [int(value.split(b" ")[2]) for value in once if value.split(b" ")[1] == producer]
            if numbers != sorted(numbers):
                self._violate(f"{index} has the records of producer {producer!r} out of order")
