"""Whether the batches that replicas have from an offset on are the same, up to their high watermarks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from moldau.core.ids import TopicPartition
from moldau.wire.batch import BatchHeader, batches


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one replica answered; nothing, if it could not be asked."""

    high_watermark: int = -1
    records: memoryview | bytes | None = None

    def headers(self) -> Iterator[BatchHeader]:
        return (header for _, header in batches(self.records or b"", partial_tail=True))


@dataclass(frozen=True, slots=True)
class Compared:
    next_offset: int
    lag: int
    unequal: tuple[str, ...]
    """What is to be told of batches that differ."""
    is_torn: bool
    """Whether batches begin at different offsets, after which nothing can be compared."""


def compare(place: TopicPartition, offset: int, replicas: Mapping[int, Fetched]) -> Compared:
    """Batch by batch, as long as every replica has one more that is committed."""
    readers = {broker_id: each.headers() for broker_id, each in replicas.items()}
    told: list[str] = []
    is_torn = False
    while not is_torn:
        row = _row(readers, replicas)
        first = next(iter(row.items()), None)
        for broker_id, header in row.items():
            assert first is not None, "a row with a header has a first"
            differs = _differs(place, *first, broker_id, header)
            told += differs
            is_torn = is_torn or (bool(differs) and header.last_offset != first[1].last_offset)
        if len(row) < len(readers) or first is None:
            break
        offset = first[1].next_offset
    lag = max((each.high_watermark for each in replicas.values()), default=-1) - offset
    return Compared(offset, lag, tuple(told), is_torn)


def _row(readers: Mapping[int, Iterator[BatchHeader]], replicas: Mapping[int, Fetched]) -> dict[int, BatchHeader]:
    """The next batch of each replica that has one below its high watermark."""
    found = {broker_id: next(reader, None) for broker_id, reader in readers.items()}
    return {
        broker_id: header
        for broker_id, header in found.items()
        if header is not None and header.last_offset < replicas[broker_id].high_watermark
    }


def _differs(
    place: TopicPartition, first_id: int, first: BatchHeader, broker_id: int, header: BatchHeader
) -> Iterable[str]:
    if first.last_offset != header.last_offset:
        return [
            f"partition {place}: replica {first_id}'s offset {first.last_offset} doesn't match replica {broker_id}'s"
            f" offset {header.last_offset}"
        ]
    if first.crc != header.crc:
        return [
            f"partition {place} has unmatched checksum at offset {header.last_offset}; replica {first_id}'s checksum"
            f" {first.crc}; replica {broker_id}'s checksum {header.crc}"
        ]
    return []
