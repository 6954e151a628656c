"""One segment: where its batches are, when it is full, and what it costs at rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.core.errors import ErrorCode
from moldau.log.batch_search import BatchPosition
from moldau.log.errors import LogError
from moldau.log.indexes.time_index import Timed
from moldau.log.segment import Segment
from tests.log.samples import NOW_MS, batch, config

BASE = 100


def filled(folder: Path, *, interval_bytes: int, spans: tuple[tuple[int, int], ...]) -> Segment:
    """A segment of batches from one offset to another, with times that grow."""
    segment = Segment.create(str(folder), BASE, index_interval_bytes=interval_bytes, now_ms=NOW_MS)
    for first, last in spans:
        times = [NOW_MS + first] * (last - first + 1)
        made = batch([b"x"] * (last - first + 1), timestamps=times, base_offset=first)
        segment.append(made, len(made), last_offset=last, max_timestamp=NOW_MS + first)
    return segment


SPANS = ((100, 104), (105, 105), (109, 120), (121, 122))


@pytest.mark.parametrize("interval_bytes", [0, 100, 1_000_000])
@pytest.mark.parametrize("awake", [True, False])
def test_a_batch_is_found_by_any_offset_up_to_its_last(tmp_path: Path, interval_bytes: int, awake: bool) -> None:
    segment = filled(tmp_path, interval_bytes=interval_bytes, spans=SPANS)
    if not awake:
        segment.close()
    file = segment.open()
    position = 0
    low = 0
    for first, last in SPANS:
        size = len(batch([b"x"] * (last - first + 1)))
        for offset in range(low, last + 1):
            assert segment.find(offset, file) == BatchPosition(position, size, first, last)
        position += size
        low = last + 1
    assert segment.find(123, file) is None
    assert (segment.size, segment.next_offset()) == (position, 123)


def test_closing_leaves_the_largest_timestamp_in_the_index(tmp_path: Path) -> None:
    segment = filled(tmp_path, interval_bytes=1_000_000, spans=SPANS)
    segment.close()
    again = Segment.existing(str(tmp_path), BASE, index_interval_bytes=0, now_ms=NOW_MS)
    assert again.load_max_timestamp() == Timed(NOW_MS + 121, 122)
    assert again.load_first_timestamp() == NOW_MS + 100


def test_truncating_finds_the_largest_timestamp_of_what_is_left(tmp_path: Path) -> None:
    segment = filled(tmp_path, interval_bytes=0, spans=SPANS)
    assert segment.truncate_to(112) == 109
    assert (segment.load_max_timestamp(), segment.next_offset()) == (Timed(NOW_MS + 105, 105), 106)
    assert Path(segment.path).stat().st_size == segment.size


def test_a_gap_may_be_truncated_to(tmp_path: Path) -> None:
    segment = filled(tmp_path, interval_bytes=0, spans=SPANS)
    assert segment.truncate_to(107) == 107


def test_an_empty_segment_is_never_full_but_for_far_offsets(tmp_path: Path) -> None:
    segment = Segment.create(str(tmp_path), BASE, index_interval_bytes=0, now_ms=0)
    tiny = config(segment_bytes=14)
    assert not segment.is_full(1000, BASE, NOW_MS, config=tiny, now_ms=NOW_MS)
    assert segment.is_full(1000, BASE + 2**31, NOW_MS, config=tiny, now_ms=NOW_MS)


def test_without_timestamps_a_segments_age_counts_from_its_creation(tmp_path: Path) -> None:
    segment = Segment.create(str(tmp_path), BASE, index_interval_bytes=0, now_ms=NOW_MS)
    segment.limit_age(1000, 0)
    made = batch([b"x"], timestamps=[-1], base_offset=BASE)
    segment.append(made, len(made), last_offset=BASE, max_timestamp=-1)
    assert not segment.is_full(10, BASE + 1, -1, config=config(), now_ms=NOW_MS + 1000)
    assert segment.is_full(10, BASE + 1, -1, config=config(), now_ms=NOW_MS + 1001)


def test_a_length_that_cannot_be_is_not_followed(tmp_path: Path) -> None:
    segment = filled(tmp_path, interval_bytes=1_000_000, spans=SPANS)
    with Path(segment.path).open("r+b") as file:
        file.seek(8)
        file.write(b"\xff\xff\xff\xff")
    with pytest.raises(LogError) as refused:
        segment.find(110, segment.open())
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


def test_at_rest_a_segment_holds_no_file_and_no_index(tmp_path: Path) -> None:
    segment = filled(tmp_path, interval_bytes=0, spans=SPANS)
    segment.rest()
    assert (segment.file, segment.offset_index.entries.first, segment.time_index.entries.first) == (None, None, None)
    assert segment.load_max_timestamp() == Timed(NOW_MS + 121, 122)
