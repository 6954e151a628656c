"""The batches of a segment's file, as they are or as far as they are sound.

A batch's checksum covers neither its base offset nor its leader epoch, for brokers stamp both. What a flipped bit made
of them is told by the neighbours: offsets and epochs never go down, and a leader leaves no gaps.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from moldau.log.batch_search import BODY_BYTES_MIN
from moldau.log.indexes.offset_index import RELATIVE_OFFSET_MAX
from moldau.log.leader_epochs import UNDEFINED, LeaderEpochs
from moldau.log.segment import Segment
from moldau.wire.batch import HEADER_BYTES, MAGIC, BatchHeader, read_header, verify_crc

SCAN_BYTES = 4 * 1024 * 1024  # one read of recovery; a batch that is larger gets a read of its own


class Scanned(NamedTuple):
    position: int
    header: BatchHeader
    batch: memoryview


def scan(segment: Segment, *, check: bool) -> Iterator[Scanned]:
    """The batches of a segment up to the first that is not whole; with a check, or whose checksum is wrong."""
    file = segment.open()
    position, size = 0, segment.size
    window, at = memoryview(b""), 0
    while position + HEADER_BYTES <= size:
        if len(window) - at < HEADER_BYTES:
            window, at = memoryview(os.pread(file.fd, SCAN_BYTES, position)), 0
        header = read_header(window, at)
        length = header.length_bytes
        if header.body_bytes < BODY_BYTES_MIN or position + length > size or header.magic != MAGIC:
            return
        if len(window) - at < length:
            window, at = memoryview(os.pread(file.fd, max(SCAN_BYTES, length), position)), 0
        if check and (header.last_offset_delta < 0 or not verify_crc(window, at, header)):
            return
        yield Scanned(position, header, window[at : at + length])
        position += length
        at += length


def sound_batches(
    segment: Segment, epochs: LeaderEpochs, *, following_offset: int | None, may_have_gaps: bool
) -> Iterator[Scanned]:
    """The batches up to the first that is damaged. The next segment begins at `following_offset`, if there is one.

    Compaction, and copying what was compacted, leave gaps between batches.
    """
    end, epoch = segment.base_offset, UNDEFINED
    stream = scan(segment, check=True)
    this = next(stream, None)
    while this is not None:
        header = this.header
        if header.base_offset < end or header.leader_epoch < epoch:
            return
        if header.last_offset - segment.base_offset > RELATIVE_OFFSET_MAX:
            return
        following = next(stream, None)
        if following is not None:
            if _contradicts(header, following.header, end, epochs):
                return
        elif header.base_offset > end and not may_have_gaps and following_offset is None:
            return  # nothing follows that could tell, and a leader appends at the log's end
        if following_offset is not None and header.next_offset > following_offset:
            return
        yield this
        end, epoch, this = header.next_offset, header.leader_epoch, following


def _contradicts(header: BatchHeader, following: BatchHeader, end: int, epochs: LeaderEpochs) -> bool:
    """Whether the batch that follows shows a header to be wrong, and not itself."""
    if header.base_offset > end and following.base_offset < header.next_offset:
        return True
    return following.leader_epoch < header.leader_epoch != epochs.epoch_of(header.base_offset)
