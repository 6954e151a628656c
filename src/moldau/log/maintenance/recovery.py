"""Opening a log: what is in its folder, what a crash left half done, and what must be checked and built anew."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.core.config.topic import TopicConfig
from moldau.log.checkpoints import CorruptCheckpoint, read_leader_epochs, write_leader_epochs
from moldau.log.files import (
    CLEANED,
    DELETED,
    LOG,
    OFFSET_INDEX,
    SEGMENT_SUFFIXES,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TRANSACTION_INDEX,
    OpenFile,
    offset_name,
    remove_if_there,
)
from moldau.log.indexes.transaction_index import AbortedTransaction, append_aborted, is_damaged
from moldau.log.leader_epochs import LeaderEpochs
from moldau.log.maintenance.scanning import scan, sound_batches
from moldau.log.producers.end_transaction_marker import read_marker
from moldau.log.producers.producer_snapshot import load_latest, write_snapshot
from moldau.log.producers.producer_state import ProducerStates
from moldau.log.segment import Segment
from moldau.wire.batch import BatchHeader

LOGGER = logging.getLogger(__name__)


class Start(NamedTuple):
    """What is known of a log before its folder is opened."""

    name: str
    config: TopicConfig
    clean: bool
    recovery_point: int
    log_start_offset: int
    now_ms: int
    may_have_holes: bool = False
    """A loss of power may have left a segment without its end, and the ones after it whole."""


@dataclass(slots=True)
class Loaded:
    path: str
    config: TopicConfig
    segments: list[Segment]
    producers: ProducerStates
    epochs: LeaderEpochs
    snapshot_offsets: list[int] = field(default_factory=list)
    log_start_offset: int = 0
    end_offset: int = 0
    recovery_point: int = 0
    scanned_bytes: int = 0  # by recovery, which checks every batch of them
    cut_bytes: int = 0


def load(path: str, start: Start) -> Loaded:
    """Open what is in a folder; after a clean stop only names, sizes and the tail of the last segment are read."""
    names = _finish_interrupted(path, os.listdir(path))
    bases = sorted(int(name[: -len(LOG)]) for name in names if name.endswith(LOG))
    interval = start.config.index_interval_bytes
    loaded = Loaded(
        path,
        start.config,
        [Segment.existing(path, base, index_interval_bytes=interval, now_ms=start.now_ms) for base in bases],
        ProducerStates(start.name),
        LeaderEpochs(),
        sorted(int(name[: -len(SNAPSHOT)]) for name in names if name.endswith(SNAPSHOT)),
    )
    _remove_orphans(path, names, set(bases))
    _load_epochs(loaded)
    if not start.clean:
        _recover(loaded, start)
    else:
        _check_indexes(loaded.segments[-1:])
    _settle_offsets(loaded, start)
    rebuild_producers(
        path, loaded.segments, loaded.producers, loaded.snapshot_offsets,
        log_start_offset=loaded.log_start_offset, end_offset=loaded.end_offset,
    )  # fmt: skip
    _tidy_snapshots(loaded)
    if not start.clean and loaded.end_offset > 0:
        _snapshot_at(loaded, loaded.end_offset)
    return loaded


def _tidy_snapshots(loaded: Loaded) -> None:
    """Keep the snapshots at the start of segments, and one at the end."""
    bases = {segment.base_offset for segment in loaded.segments}
    for offset in loaded.snapshot_offsets[:]:
        if offset not in bases and offset != loaded.end_offset:
            remove_if_there(f"{loaded.path}/{offset_name(offset)}{SNAPSHOT}")
            loaded.snapshot_offsets.remove(offset)


def _finish_interrupted(path: str, names: list[str]) -> list[str]:
    """Undo a cleaning that did not get as far as swapping, finish one that did, delete what was to be deleted."""
    cleaned = [name for name in names if name.endswith(CLEANED)]
    swapped = [name for name in names if name.endswith(SWAP)]
    first_cleaned = min((int(name.split(".")[0]) for name in cleaned), default=None)
    for name in names:
        stale_swap = name.endswith(SWAP) and first_cleaned is not None and int(name.split(".")[0]) >= first_cleaned
        if name.endswith((DELETED, CLEANED, ".tmp")) or stale_swap:
            remove_if_there(f"{path}/{name}")
    valid = [name for name in swapped if os.path.exists(f"{path}/{name}")]
    if valid:
        _finish_swap(path, valid, names)
    return os.listdir(path) if cleaned or swapped else [name for name in names if not name.endswith((DELETED, ".tmp"))]


def _finish_swap(path: str, swapped: list[str], names: list[str]) -> None:
    """A swapped segment replaces every segment whose first offset it covers, its own name included."""
    for name in swapped:
        if not name.endswith(LOG + SWAP):
            continue
        base = int(name.split(".")[0])
        replacement = Segment(path, base, size=os.stat(f"{path}/{name}").st_size, index_interval_bytes=0, created_ms=0)
        end = _end_of_file(f"{path}/{name}", replacement)
        for suffix in SEGMENT_SUFFIXES:
            if f"{offset_name(base)}{suffix}{SWAP}" not in swapped:
                remove_if_there(replacement.prefix + suffix)
        for other in names:
            if other.endswith(LOG) and base < int(other[: -len(LOG)]) < end:
                LOGGER.info("%s: deleting %s, which the cleaned segment %d replaces", path, other, base)
                for suffix in SEGMENT_SUFFIXES:
                    remove_if_there(f"{path}/{other[: -len(LOG)]}{suffix}")
    for name in swapped:
        os.replace(f"{path}/{name}", f"{path}/{name[: -len(SWAP)]}")


def _end_of_file(path: str, segment: Segment) -> int:
    end = segment.base_offset
    for _, (base_offset, _, delta, _) in segment.hops(OpenFile(path, os.O_RDONLY)):
        end = base_offset + delta + 1
    return end


def _remove_orphans(path: str, names: list[str], bases: set[int]) -> None:
    """An index without its log is of no use."""
    for name in names:
        if name.endswith((OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)) and int(name.split(".")[0]) not in bases:
            LOGGER.warning("%s/%s has no log beside it; deleting it", path, name)
            remove_if_there(f"{path}/{name}")


def _load_epochs(loaded: Loaded) -> None:
    try:
        loaded.epochs = read_leader_epochs(loaded.path)
    except CorruptCheckpoint as wrong:
        LOGGER.warning("%s; reading the leader epochs from the batches", wrong)
        for segment in loaded.segments:
            for _, header, _ in scan(segment, check=False):
                if header.leader_epoch > loaded.epochs.latest:
                    loaded.epochs.assign(header.leader_epoch, header.base_offset)
        write_leader_epochs(loaded.path, loaded.epochs)


def _check_indexes(segments: list[Segment]) -> None:
    for segment in segments:
        if fault := segment.index_fault():
            LOGGER.warning("%s; rebuilding the indexes", fault)
            segment.reindex()


def _recover(loaded: Loaded, start: Start) -> None:
    """Check every batch from the recovery point's segment on. The first that is wrong ends the log."""
    segments = loaded.segments
    before = loaded.epochs.entries[:]
    first = max((slot for slot, each in enumerate(segments) if each.base_offset <= start.recovery_point), default=0)
    _check_indexes(segments[:first])
    for segment in segments[:first]:
        if is_damaged(segment.prefix + TRANSACTION_INDEX, segment.base_offset):
            LOGGER.warning("%s%s is damaged; rebuilding it", segment.prefix, TRANSACTION_INDEX)
            first = min(first, segments.index(segment))
    for slot in range(first, len(segments)):
        segment = segments[slot]
        rebuild_producers(
            loaded.path, segments[:slot], loaded.producers, loaded.snapshot_offsets,
            log_start_offset=start.log_start_offset, end_offset=segment.base_offset,
        )  # fmt: skip
        loaded.scanned_bytes += segment.size
        following_offset = segments[slot + 1].base_offset if slot + 1 < len(segments) else None
        lost = recover_segment(
            segment, loaded.producers, loaded.epochs,
            following_offset=following_offset, may_have_gaps=start.config.compact,
        )  # fmt: skip
        loaded.cut_bytes += lost
        if lost or (following_offset is not None and _has_hole(segment, following_offset, start)):
            _delete_from(loaded, slot + 1)
            break
        if slot + 1 < len(segments):
            _snapshot_at(loaded, segments[slot + 1].base_offset)
    if loaded.epochs.entries != before:
        write_leader_epochs(loaded.path, loaded.epochs)


def _has_hole(segment: Segment, following_offset: int, start: Start) -> bool:
    """Whether records were lost between a segment and the next one, which begins at `following_offset`.

    The last batch that is there is whole, so that only the next segment tells. Compaction leaves such gaps, too.
    """
    if not start.may_have_holes or start.config.compact or following_offset <= start.recovery_point:
        return False
    end = segment.next_offset()
    if end < following_offset:
        LOGGER.warning(
            "%s: ends at offset %d, but the next segment begins at %d; the records in between are lost here",
            segment.path, end, following_offset,
        )  # fmt: skip
    return end < following_offset


def _delete_from(loaded: Loaded, slot: int) -> None:
    for later in loaded.segments[slot:]:
        LOGGER.warning("%s: deleted, because the log ends before it", later.path)
        loaded.cut_bytes += later.size
        for suffix in SEGMENT_SUFFIXES:
            remove_if_there(later.prefix + suffix)
    del loaded.segments[slot:]


def _snapshot_at(loaded: Loaded, offset: int) -> None:
    loaded.producers.end_offset = offset
    if offset not in loaded.snapshot_offsets:
        write_snapshot(loaded.path, loaded.producers)
        loaded.snapshot_offsets = sorted([*loaded.snapshot_offsets, offset])


def recover_segment(
    segment: Segment,
    producers: ProducerStates,
    epochs: LeaderEpochs,
    *,
    following_offset: int | None,
    may_have_gaps: bool,
) -> int:
    """Check a segment, build its indexes and note its producers; gives the bytes that were cut off its end."""
    remove_if_there(segment.prefix + TRANSACTION_INDEX)
    size = segment.size
    segment.reset_indexes()
    end, next_offset = 0, segment.base_offset
    sound = sound_batches(segment, epochs, following_offset=following_offset, may_have_gaps=may_have_gaps)
    for position, header, batch in sound:
        segment.note(header.last_offset, header.max_timestamp, position=position, size=len(batch))
        if header.leader_epoch > epochs.latest:
            epochs.assign(header.leader_epoch, header.base_offset)
        _replay(segment, producers, header, batch, with_index=True)
        end, next_offset = position + len(batch), header.next_offset
    segment.size = end
    if end < size:
        LOGGER.warning(
            "%s: no whole, sound batch at byte %d; truncating there, which loses the last %d bytes, from offset %d on",
            segment.path, end, size - end, next_offset,
        )  # fmt: skip
        os.truncate(segment.path, end)
    if segment.max_timestamp >= 0:
        segment.time_index.append(segment.max_timestamp, segment.max_timestamp_offset)
    segment.offset_index.entries.unload()
    segment.time_index.entries.unload()
    return size - end


def _replay(
    segment: Segment, producers: ProducerStates, header: BatchHeader, batch: memoryview, *, with_index: bool
) -> None:
    """Note what a batch of the log says of its producer."""
    producers.end_offset = header.next_offset
    if header.producer_id < 0:
        return
    if not header.is_control:
        producers.apply(
            header, first_offset=header.base_offset, last_offset=header.last_offset, timestamp=header.max_timestamp
        )
        return
    marker = read_marker(batch) if header.record_count > 0 else None
    if marker is None:
        return
    completed = producers.apply_marker(header, marker, offset=header.base_offset, timestamp=header.max_timestamp)
    if completed is not None:
        stable = producers.complete(completed)
        if completed.is_aborted and with_index:
            append_aborted(segment.prefix + TRANSACTION_INDEX, AbortedTransaction.of(completed, stable))


def _settle_offsets(loaded: Loaded, start: Start) -> None:
    """Where the log begins and ends. One that ends before its start lost its files, and goes on empty."""
    interval = start.config.index_interval_bytes
    end_offset = loaded.segments[-1].next_offset() if loaded.segments else -1
    if end_offset < start.log_start_offset:
        if loaded.segments:
            LOGGER.warning(
                "%s: the log ends at %d, before its start %d; it goes on empty",
                loaded.path, end_offset, start.log_start_offset,
            )  # fmt: skip
        for segment in loaded.segments:
            for suffix in SEGMENT_SUFFIXES:
                remove_if_there(segment.prefix + suffix)
        end_offset = max(0, start.log_start_offset)
        loaded.segments = [Segment.create(loaded.path, end_offset, index_interval_bytes=interval, now_ms=start.now_ms)]
        loaded.epochs.clear()
    loaded.end_offset = end_offset
    loaded.log_start_offset = max(start.log_start_offset, loaded.segments[0].base_offset)
    loaded.recovery_point = end_offset if start.clean else min(start.recovery_point, end_offset)
    loaded.epochs.truncate_end(end_offset)
    loaded.epochs.truncate_start(start.log_start_offset)


def rebuild_producers(
    path: str,
    segments: list[Segment],
    producers: ProducerStates,
    snapshot_offsets: list[int],
    *,
    log_start_offset: int,
    end_offset: int,
) -> None:
    """Bring the producers to an offset: from where they are, or from the last snapshot, by the batches after it."""
    for offset in [each for each in snapshot_offsets if each > end_offset]:
        remove_if_there(f"{path}/{offset_name(offset)}{SNAPSHOT}")
        snapshot_offsets.remove(offset)
    if producers.end_offset == end_offset:
        return
    producers.clear(log_start_offset)
    load_latest(path, snapshot_offsets, producers)
    for slot, segment in enumerate(segments):
        following = segments[slot + 1].base_offset if slot + 1 < len(segments) else end_offset
        if following <= producers.end_offset or producers.end_offset >= end_offset:
            continue
        for _, header, batch in scan(segment, check=False):
            if header.base_offset >= end_offset:
                break
            if header.last_offset >= producers.end_offset:
                _replay(segment, producers, header, batch, with_index=False)
    producers.end_offset = end_offset
