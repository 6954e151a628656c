"""Compaction: what is cleaned when, what survives, and what a crash in the middle leaves."""

from __future__ import annotations

import asyncio
import os
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moldau.core.ids import Offset, TopicId
from moldau.log.checkpoints import CLEANER_OFFSETS, read_offsets
from moldau.log.compaction import cleaning, rewriting
from moldau.log.compaction.batch_filter import BatchFilter, LastSent, Rules
from moldau.log.compaction.cleanable import Dirt, Extent, group, is_worthwhile, measure
from moldau.log.compaction.cleaned_transactions import CleanedTransactions
from moldau.log.compaction.cleaner import Cleaner
from moldau.log.compaction.cleaning import begin, clean_log
from moldau.log.compaction.offset_map import ENTRIES_MIN, OffsetMap
from moldau.log.compaction.rewriting import Source, read_batches, swap
from moldau.log.directories.log_directories import LogDirectories
from moldau.log.directories.offset_checkpoints import Checkpoints
from moldau.log.directories.opening import forget_offsets_of
from moldau.log.indexes.transaction_index import AbortedTransaction, read_aborted
from moldau.log.partition_log import PartitionLog
from moldau.log.producers.producer_state import Origin
from moldau.wire.batch import (
    CONTROL,
    TRANSACTIONAL,
    BatchHeader,
    Codec,
    CorruptBatch,
    Record,
    batches,
    build_batch,
    read_header,
    records,
    verify_crc,
)
from tests.log.samples import NOW_MS, PARTITION, config, crash, create, log_in, reopen

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
AGES_MS = 1 << 60
MEMORY = 1 << 24
CAP = 1 << 20
COMPACT = config(cleanup_policy="compact", segment_bytes=4096, index_interval_bytes=256)

Pair = tuple[str, str | None]


def put(log: PartitionLog, *pairs: Pair, codec: Codec = Codec.NONE, timestamp: int = NOW_MS, **producer: int) -> int:
    """One batch of keys and values, None for a tombstone; gives its first offset."""
    made = [
        Record(i, timestamp, key.encode(), None if value is None else value.encode())
        for i, (key, value) in enumerate(pairs)
    ]
    batch = memoryview(build_batch(made, base_offset=0, codec=codec, **producer))
    return log.append_as_leader(batch, leader_epoch=0, now_ms=timestamp, verified=True).first_offset


def every_batch(log: PartitionLog) -> Iterator[tuple[memoryview, BatchHeader]]:
    for segment in log.segments:
        view = memoryview(Path(segment.path).read_bytes())
        assert len(view) == segment.size
        for at, header in batches(view):
            batch = view[at : at + header.length_bytes]
            assert verify_crc(batch, 0, header)
            yield batch, header


def stored(log: PartitionLog) -> list[tuple[int, str, str | None]]:
    """Every data record that the log holds, with its offset."""
    return [
        (r.offset, bytes(r.key or b"").decode(), None if r.value is None else bytes(r.value).decode())
        for batch, header in every_batch(log)
        if not header.is_control
        for r in records(batch, decompressed_bytes_max=CAP)
    ]


def latest(log: PartitionLog) -> dict[str, str | None]:
    """What a reader of the whole log knows in the end."""
    return {key: value for _, key, value in stored(log)}


def dirt_of(log: PartitionLog, *, checkpoint: int | None = None, now_ms: int = NOW_MS) -> Dirt:
    extent = Extent(log.log_start_offset, log.end_offset, log.end_offset)
    return measure(log.segments, config=log.config, checkpoint=checkpoint, extent=extent, now_ms=now_ms)


def clean(log: PartitionLog, *, checkpoint: int | None = None, now_ms: int = NOW_MS, memory: int = MEMORY) -> int:
    end = asyncio.run(
        clean_log(log, dirt_of(log, checkpoint=checkpoint, now_ms=now_ms), now_ms=now_ms, memory_bytes=memory)
    )
    assert end is not None
    return end


# What to clean, and when


class Seen:
    def __init__(self, base_offset: int, size: int = 100, *, first: int = NOW_MS, largest: int = NOW_MS) -> None:
        self.base_offset, self.size, self.first, self.largest = base_offset, size, first, largest

    def largest_timestamp(self) -> int:
        return self.largest

    def load_first_timestamp(self) -> int:
        return self.first


FOUR = [Seen(0), Seen(10), Seen(20), Seen(30)]


def measured(
    segments: list[Seen],
    *,
    checkpoint: int | None = None,
    start: int = 0,
    stable: int = 35,
    now_ms: int = NOW_MS,
    **keys: object,
) -> Dirt:
    return measure(
        segments,
        config=config(cleanup_policy="compact", **keys),
        checkpoint=checkpoint,
        extent=Extent(start, stable, 35),
        now_ms=now_ms,
    )


def test_all_but_the_active_segment_is_dirty_at_first() -> None:
    assert measured(FOUR) == Dirt(0, 30, clean_bytes=0, dirty_bytes=300, is_overdue=False)


def test_the_checkpoint_divides_clean_from_dirty() -> None:
    dirt = measured(FOUR, checkpoint=20)
    assert dirt == Dirt(20, 30, clean_bytes=200, dirty_bytes=100, is_overdue=False)
    assert dirt.ratio == pytest.approx(1 / 3)
    assert measured(FOUR, checkpoint=30).dirty_bytes == 0


@pytest.mark.parametrize("checkpoint", [3, 36, 1 << 40])
def test_a_checkpoint_outside_the_log_is_of_no_use(checkpoint: int) -> None:
    assert measured(FOUR, checkpoint=checkpoint, start=5).first_dirty_offset == 5


def test_what_is_not_settled_is_left_alone() -> None:
    assert measured(FOUR, stable=25).first_uncleanable_offset == 20
    assert measured(FOUR, stable=20).first_uncleanable_offset == 20
    assert measured(FOUR, stable=5) == Dirt(0, 0, clean_bytes=0, dirty_bytes=0, is_overdue=False)


def test_the_young_are_left_alone() -> None:
    segments = [Seen(0, largest=NOW_MS - 100), Seen(10, largest=NOW_MS - 10), Seen(20, largest=NOW_MS - 100), Seen(30)]
    assert measured(segments, min_compaction_lag_ms=50).first_uncleanable_offset == 10
    assert measured(segments, min_compaction_lag_ms=5).first_uncleanable_offset == 30
    assert measured(segments, min_compaction_lag_ms=500).dirty_bytes == 0


def test_the_dirty_ratio_or_the_largest_lag_asks_for_a_round() -> None:
    used = config(cleanup_policy="compact", min_cleanable_dirty_ratio=0.5, max_compaction_lag_ms=HOUR_MS)
    lags = {"max_compaction_lag_ms": HOUR_MS}
    assert is_worthwhile(measured(FOUR, checkpoint=10, **lags), used)
    assert not is_worthwhile(measured(FOUR, checkpoint=20, **lags), used)
    assert is_worthwhile(measured(FOUR, checkpoint=20, now_ms=NOW_MS + HOUR_MS + 1, **lags), used)
    assert not is_worthwhile(measured(FOUR, checkpoint=30, now_ms=NOW_MS + HOUR_MS + 1, **lags), used)


def test_small_neighbours_are_joined() -> None:
    segments = [Seen(0, 60), Seen(10, 40), Seen(20, 1), Seen(30, 100), Seen(40, 0), Seen(50, 10)]
    joined = group(segments, end_offset=50, segment_bytes=100, first_uncleanable_offset=50)
    assert [[each.base_offset for each in group] for group in joined] == [[0, 10], [20], [30, 40]]


def test_joined_segments_stay_within_what_an_index_can_address() -> None:
    far = (1 << 31) + 15
    segments = [Seen(0, 1), Seen(10, 1), Seen(far, 1)]
    joined = group(segments, end_offset=far + 1, segment_bytes=100, first_uncleanable_offset=far + 1)
    assert [[each.base_offset for each in group] for group in joined] == [[0], [10], [far]]


def test_the_offset_map_forgets_no_key_and_knows_when_it_is_full() -> None:
    offsets = OffsetMap(0)
    for number in range(ENTRIES_MIN):
        assert not offsets.is_full
        offsets.put(b"key %d of a length that needs a digest" % number, number)
    assert offsets.is_full
    assert offsets.get(b"key 77 of a length that needs a digest") == 77
    assert offsets.get(b"another key") == -1


# What survives


@pytest.mark.parametrize("codec", Codec)
def test_only_the_latest_of_each_key_survives_with_its_offset(tmp_path: Path, codec: Codec) -> None:
    log = create(tmp_path, COMPACT)
    for number in range(300):
        put(log, (f"k{number % 7}", f"v{number}"), ("all", str(number)), codec=codec)
    active = log.active.base_offset
    before = {offset: (key, value) for offset, key, value in stored(log)}
    assert clean(log) == active
    after = stored(log)
    assert all(before[offset] == (key, value) for offset, key, value in after)
    cleaned = [key for offset, key, _ in after if offset < active]
    assert sorted(cleaned) == sorted({"all", *(f"k{i}" for i in range(7))})
    assert latest(log) == {"all": "299"} | {f"k{i}": f"v{n}" for n in range(300) for i in [n % 7]}
    clean(log)  # segments are joined by the sizes they had before, so it is the next round that joins the small ones
    assert [each.base_offset for each in log.segments] == [0, active]
    assert stored(log) == after


def test_reads_and_time_searches_go_on_over_the_gaps(tmp_path: Path) -> None:
    log = create(tmp_path, COMPACT)
    for number in range(300):
        put(log, (f"k{number % 3}", "x" * 50), timestamp=NOW_MS + number)
    clean(log)
    for offset in range(log.end_offset):
        view = memoryview(log.read(Offset(offset), bytes_max=CAP, end=log.end_offset, one_batch=True).read())
        assert read_header(view).last_offset >= offset
    found = log.offset_for_timestamp(NOW_MS + 5)
    assert found is not None
    assert found.offset >= 5


def test_a_second_round_begins_where_the_first_ended(tmp_path: Path) -> None:
    log = create(tmp_path, COMPACT)
    for number in range(200):
        put(log, (f"k{number % 5}", "a" * 40))
    first = clean(log)
    for number in range(200):
        put(log, (f"k{number % 5}", "b" * 40))
    second = clean(log, checkpoint=first)
    assert second > first
    assert len({key for offset, key, _ in stored(log) if offset < second}) == 5
    assert len([1 for offset, *_ in stored(log) if offset < second]) == 5


def test_memory_bounds_a_round_and_the_next_one_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.log.compaction.offset_map.ENTRIES_MIN", 10)
    log = create(tmp_path, COMPACT)
    for number in range(400):
        put(log, (f"k{number % 100}", f"v{number}"))
    end, rounds, active = 0, 0, log.active.base_offset
    while end < active:
        previous, end = end, clean(log, checkpoint=end, memory=0)
        rounds += 1
        assert end > previous
    assert rounds > 3
    assert latest(log) == {f"k{n % 100}": f"v{n}" for n in range(400)}


def test_tombstones_stay_for_their_time_and_then_go(tmp_path: Path) -> None:
    log = create(tmp_path, config(cleanup_policy="compact", delete_retention_ms=DAY_MS))
    put(log, ("a", "1"), ("b", "1"))
    put(log, ("a", None), ("c", "1"))
    log.roll(NOW_MS)
    clean(log)
    assert stored(log) == [(1, "b", "1"), (2, "a", None), (3, "c", "1")]
    header = next(header for _, header in every_batch(log) if header.base_offset == 2)
    assert header.delete_horizon_ms == NOW_MS + DAY_MS
    times = [r.timestamp for batch, _ in every_batch(log) for r in records(batch, decompressed_bytes_max=CAP)]
    assert times == [NOW_MS] * 3

    clean(log, now_ms=NOW_MS + DAY_MS - 1)
    assert (2, "a", None) in stored(log)
    clean(log, now_ms=NOW_MS + DAY_MS)
    assert stored(log) == [(1, "b", "1"), (3, "c", "1")]
    assert [r.timestamp for b, _ in every_batch(log) for r in records(b, decompressed_bytes_max=CAP)] == [NOW_MS] * 2


def test_the_end_of_the_cleaned_part_stays_known(tmp_path: Path) -> None:
    log = create(tmp_path, config(cleanup_policy="compact"))
    put(log, ("a", "1"), ("b", "1"))
    put(log, ("a", None), ("b", None))
    log.roll(NOW_MS)
    put(log, ("c", "1"))
    clean(log)
    clean(log, now_ms=NOW_MS + 2 * DAY_MS)
    assert stored(log) == [(4, "c", "1")]
    assert [(header.base_offset, header.last_offset, header.record_count) for _, header in every_batch(log)] == [
        (2, 3, 0),
        (4, 4, 1),
    ]


def test_a_producers_last_sequence_outlives_its_records(tmp_path: Path) -> None:
    log = create(tmp_path, config(cleanup_policy="compact"))
    put(log, ("a", "1"), producer_id=7, producer_epoch=0, base_sequence=0)
    put(log, ("a", "2"), ("b", "1"), producer_id=7, producer_epoch=0, base_sequence=1)
    put(log, ("a", "3"), ("b", "2"))
    log.roll(NOW_MS)
    clean(log)
    assert stored(log) == [(3, "a", "3"), (4, "b", "2")]
    kept = [header for _, header in every_batch(log)]
    assert [(h.base_offset, h.last_offset, h.record_count, h.base_sequence) for h in kept] == [
        (1, 2, 0, 1),
        (3, 4, 2, -1),
    ]
    for snapshot in Path(log.path).glob("*.snapshot"):
        snapshot.unlink()
    again = reopen(tmp_path, log.config, clean=False)
    assert put(again, ("c", "1"), producer_id=7, producer_epoch=0, base_sequence=3) == 5


def marker(log: PartitionLog, *, producer_id: int, commits: bool) -> None:
    key, value = struct.pack(">hh", 0, int(commits)), struct.pack(">hi", 0, 0)
    batch = build_batch(
        [Record(0, NOW_MS, key, value)], attributes=CONTROL | TRANSACTIONAL, producer_id=producer_id, producer_epoch=0
    )
    log.append_as_leader(memoryview(batch), leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)


def transactional(log: PartitionLog, *pairs: Pair, producer_id: int, sequence: int) -> None:
    put(log, *pairs, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, attributes=TRANSACTIONAL)


def test_aborted_records_go_and_hide_nothing(tmp_path: Path) -> None:
    log = create(tmp_path, config(cleanup_policy="compact"))
    put(log, ("a", "good"))
    transactional(log, ("a", "aborted"), producer_id=1, sequence=0)
    transactional(log, ("b", "committed"), producer_id=2, sequence=0)
    marker(log, producer_id=1, commits=False)
    marker(log, producer_id=2, commits=True)
    put(log, ("z", "end"))
    log.roll(NOW_MS)
    clean(log)
    assert stored(log) == [(0, "a", "good"), (2, "b", "committed"), (5, "z", "end")]
    assert [h.base_offset for _, h in every_batch(log) if h.is_control] == [3, 4]


def test_markers_go_after_their_transactions_once_readers_had_time(tmp_path: Path) -> None:
    log = create(tmp_path, config(cleanup_policy="compact"))
    transactional(log, ("a", "1"), producer_id=2, sequence=0)
    marker(log, producer_id=2, commits=True)
    put(log, ("a", "2"))
    log.roll(NOW_MS)
    log.producers.producers.clear()  # the producer has expired, so that nothing must be kept for its sequences
    clean(log)
    clean(log, now_ms=NOW_MS + 1)
    horizons = [h.delete_horizon_ms for _, h in every_batch(log) if h.is_control]
    assert horizons == [NOW_MS + 1 + DAY_MS]
    clean(log, now_ms=NOW_MS + 1 + DAY_MS)
    assert [h.base_offset for _, h in every_batch(log)] == [2]


def test_the_index_of_aborted_transactions_is_written_anew(tmp_path: Path) -> None:
    log = create(tmp_path, config(cleanup_policy="compact"))
    transactional(log, ("a", "1"), producer_id=1, sequence=0)
    marker(log, producer_id=1, commits=False)
    log.roll(NOW_MS)
    log.producers.producers.clear()
    index = Path(log.segments[0].prefix + ".txnindex")
    assert [each.producer_id for each in read_aborted(str(index))] == [1]
    clean(log)
    # The transaction's batches were seen, and removed, in this round: its marker and its entry may go in the next.
    assert [each.first_offset for each in read_aborted(str(index))] == [0]
    clean(log, now_ms=NOW_MS + 1)
    assert read_aborted(str(index)) == []


def test_an_aborted_transaction_that_was_over_before_is_not_taken_for_a_new_one() -> None:
    over = AbortedTransaction(producer_id=1, first_offset=0, last_offset=5, last_stable_offset=0)
    batch = build_batch([Record(9, NOW_MS, b"k")], base_offset=9, producer_id=1, attributes=TRANSACTIONAL)
    assert CleanedTransactions([over], start=0).observe(read_header(batch))
    assert not CleanedTransactions([over], start=6).observe(read_header(batch))


def rules(**changes: object) -> Rules:
    plain: dict[str, object] = {
        "now_ms": NOW_MS,
        "delete_retention_ms": DAY_MS,
        "first_uncleanable_offset": 1000,
        "unfolded_bytes_max": CAP,
        "last_sent": {},
    }
    return Rules(**(plain | changes))  # type: ignore[arg-type]


def filtered(batch: bytearray, known: dict[bytes, int], **changes: object) -> bytearray | None:
    offsets = OffsetMap(MEMORY)
    for key, offset in known.items():
        offsets.put(key, offset)
    offsets.advance(max(known.values(), default=-1))
    left = BatchFilter(rules(**changes), offsets, CleanedTransactions([], start=0)).apply(
        memoryview(batch), read_header(batch)
    )
    return None if left is None else bytearray(left)


def test_a_batch_that_loses_nothing_is_copied_byte_for_byte() -> None:
    batch = build_batch([Record(5, NOW_MS, b"a", b"1"), Record(6, NOW_MS, b"b", b"2")], base_offset=5, codec=Codec.LZ4)
    assert filtered(batch, {b"a": 5, b"b": 6}) == batch
    assert filtered(batch, {b"x": 4}) == batch  # the map ends before it


def test_what_cannot_be_read_is_kept_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    batch = build_batch([Record(0, NOW_MS, b"a", b"1"), Record(1, NOW_MS, b"a", b"2")], codec=Codec.GZIP)
    damaged = bytearray(batch)
    damaged[-1] ^= 1
    assert filtered(damaged, {b"a": 1}) == damaged
    large = build_batch([Record(0, NOW_MS, b"a", bytes(CAP)), Record(1, NOW_MS, b"a", b"2")], codec=Codec.GZIP)
    assert filtered(large, {b"a": 1}) == large
    assert len(caplog.records) == 2


def test_the_last_marker_of_a_producer_is_kept_for_its_epoch() -> None:
    control = build_batch(
        [Record(3, NOW_MS, struct.pack(">hh", 0, 1), struct.pack(">hi", 0, 0))],
        base_offset=3, producer_id=4, producer_epoch=2, attributes=CONTROL | TRANSACTIONAL | 0x40,
    )  # fmt: skip
    spent = {"now_ms": NOW_MS + 1}
    assert filtered(control, {b"k": 9}, **spent) is None
    kept = filtered(control, {b"k": 9}, last_sent={4: LastSent(-1, 2)}, **spent)
    assert kept is not None
    assert (read_header(kept).record_count, read_header(kept).producer_epoch) == (0, 2)
    assert filtered(control, {b"k": 9}, last_sent={4: LastSent(-1, 3)}, **spent) is None


def test_batches_larger_than_a_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewriting, "CHUNK_BYTES", 100)
    made = [build_batch([Record(i, NOW_MS, b"k", b"v" * size)]) for i, size in enumerate([1, 500, 20, 3000, 90])]
    path = tmp_path / "segment"
    path.write_bytes(b"".join(made))
    found = [bytes(batch) for batch, _ in read_batches(Source(str(path), 0, path.stat().st_size))]
    assert found == made


KEYS = st.sampled_from(["a", "b", "c", "a key of more than sixteen bytes", ""])
BATCHES = st.lists(
    st.tuples(
        st.lists(st.tuples(KEYS, st.none() | st.sampled_from(["1", "2", "x" * 300])), min_size=1, max_size=6),
        st.sampled_from(Codec),
        st.booleans(),
    ),
    min_size=1,
    max_size=25,
)


@given(BATCHES, st.integers(0, 3 * DAY_MS))
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_reader_learns_the_same_before_and_after(
    tmp_path_factory: pytest.TempPathFactory, written: list[tuple[list[Pair], Codec, bool]], later_ms: int
) -> None:
    folder = tmp_path_factory.mktemp("log")
    log = create(folder, config(cleanup_policy="compact", segment_bytes=3000))
    for pairs, codec, rolls in written:
        put(log, *pairs, codec=codec)
        if rolls:
            log.roll(NOW_MS)
    log.roll(NOW_MS)
    before, known = stored(log), latest(log)
    alive = {key: value for key, value in known.items() if value is not None}
    for now_ms in (NOW_MS, NOW_MS + later_ms, NOW_MS + 3 * DAY_MS):
        clean(log, now_ms=now_ms)
        after = stored(log)
        assert set(after) <= set(before)
        assert {key: value for key, value in latest(log).items() if value is not None} == alive
    assert {key for _, key, _ in stored(log)} == set(alive)
    again = reopen(folder, log.config, clean=False)
    assert (again.end_offset, stored(again)) == (log.end_offset, stored(log))
    shutil.rmtree(folder)


# Swapping, and crashes


def dirty_log(folder: Path) -> PartitionLog:
    return filled(create(folder, COMPACT))


def filled(log: PartitionLog) -> PartitionLog:
    for number in range(300):
        put(log, (f"k{number % 7}", f"v{number}"), ("all", str(number)))
    return log


class Crash(BaseException):
    pass


def crashing(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """The process dies in place of the rename with this number."""
    real, done = os.replace, [0]

    def replace(source: str, target: str) -> None:
        if done[0] == after:
            raise Crash
        done[0] += 1
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)


@pytest.mark.parametrize("after", range(0, 40, 1))
def test_a_crash_at_any_rename_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    log = dirty_log(tmp_path)
    known, end = latest(log), log.end_offset
    log.flush()
    dirt = dirt_of(log)
    old = [each for each in log.segments[:-1] if each.base_offset < dirt.first_uncleanable_offset]
    work = begin(log, old, dirt, now_ms=NOW_MS, memory_bytes=MEMORY)
    work.build_map()
    half = len(old) // 2
    groups = [old[:half], old[half:]]
    with monkeypatch.context() as patch:
        crashing(patch, after)
        try:
            for segments in groups:
                cleaned = work.rewrite([Source(each.path, each.base_offset, each.size) for each in segments])
                assert swap(log, segments, cleaned, NOW_MS)
        except Crash:
            pass
    again = reopen(tmp_path, COMPACT, clean=False, recovery_point=end)
    assert latest(again) == known
    assert again.end_offset == end
    assert not [path for path in Path(again.path).iterdir() if path.suffix in (".cleaned", ".swap", ".deleted")]
    clean(again)
    assert latest(again) == known
    assert len([1 for offset, *_ in stored(again) if offset < again.active.base_offset]) == 8


def test_a_crash_while_rewriting_leaves_nothing_behind(tmp_path: Path) -> None:
    log = dirty_log(tmp_path)
    before = stored(log)
    dirt = dirt_of(log)
    work = begin(log, log.segments[:-1], dirt, now_ms=NOW_MS, memory_bytes=MEMORY)
    work.build_map()
    work.rewrite([Source(each.path, each.base_offset, each.size) for each in log.segments[:-1]])
    assert list(Path(log.path).glob("*.cleaned"))
    again = reopen(tmp_path, COMPACT, clean=True, recovery_point=log.end_offset)
    assert not list(Path(log.path).glob("*.cleaned"))
    assert stored(again) == before


def test_segments_that_were_deleted_meanwhile_are_not_brought_back(tmp_path: Path) -> None:
    log = dirty_log(tmp_path)
    dirt = dirt_of(log)
    old = log.segments[:-1]
    work = begin(log, old, dirt, now_ms=NOW_MS, memory_bytes=MEMORY)
    work.build_map()
    cleaned = work.rewrite([Source(each.path, each.base_offset, each.size) for each in old])
    log.advance_log_start(Offset(old[1].base_offset), now_ms=NOW_MS)
    log.delete_old_segments(NOW_MS, log.end_offset)
    before = stored(log)
    assert not swap(log, old, cleaned, NOW_MS)
    assert stored(log) == before
    assert not list(Path(log.path).glob("*.cleaned"))


def test_old_files_are_removed_after_their_delay(tmp_path: Path) -> None:
    log = dirty_log(tmp_path)
    clean(log)
    assert list(Path(log.path).glob("*.deleted"))
    assert log.removals.due(NOW_MS) == []
    due = log.removals.due(NOW_MS + log.config.file_delete_delay_ms)
    assert sorted(due) == sorted(str(path) for path in Path(log.path).glob("*.deleted"))
    bases = {each.base_offset for each in log.segments}
    assert {int(path.name.split(".")[0]) for path in Path(log.path).glob("*.snapshot")} <= bases


def test_an_abandoned_round_ends_soon(tmp_path: Path) -> None:
    log = dirty_log(tmp_path)
    work = begin(log, log.segments[:-1], dirt_of(log), now_ms=NOW_MS, memory_bytes=MEMORY)
    work.abandon()
    with pytest.raises(rewriting.Abandoned):
        work.build_map()
    with pytest.raises(rewriting.Abandoned):
        work.rewrite([Source(each.path, each.base_offset, each.size) for each in log.segments[:-1]])
    assert not list(Path(log.path).glob("*.cleaned"))


# The cleaner of a broker


def run(cleaner: Cleaner, log: PartitionLog, now_ms: int = NOW_MS) -> PartitionLog | None:
    return asyncio.run(cleaner.clean_dirtiest([(log, log.end_offset)], now_ms))


def test_the_cleaner_keeps_how_far_it_got(tmp_path: Path) -> None:
    directories = LogDirectories.open([tmp_path], node_id=1)
    log = filled(log_in(directories, used=COMPACT))
    cleaner = Cleaner(memory_bytes=MEMORY)
    assert run(cleaner, log) is log
    assert run(cleaner, log) is None
    assert read_offsets(str(tmp_path), CLEANER_OFFSETS) == {PARTITION: log.active.base_offset}
    directories.close()
    again = log_in(LogDirectories.open([tmp_path], node_id=1), used=COMPACT)
    assert again.clean_to == log.active.base_offset
    assert run(Cleaner(memory_bytes=MEMORY), again) is None


def test_nothing_is_remembered_of_deleted_logs(tmp_path: Path) -> None:
    damaged = dirty_log(tmp_path)
    with open(damaged.segments[0].path, "r+b") as file:
        file.write(bytes(100))
    cleaner = Cleaner(memory_bytes=MEMORY)
    assert run(cleaner, damaged) is None
    assert len(cleaner) == 1
    asyncio.run(cleaner.clean_dirtiest([], NOW_MS))
    assert len(cleaner) == 0


def test_what_grows_again_after_a_truncation_is_dirty(tmp_path: Path) -> None:
    """Else a tombstone in it would go in its time, while the value that it hides stays for good."""
    log = dirty_log(tmp_path)
    cleaner = Cleaner(memory_bytes=MEMORY)
    assert run(cleaner, log) is log
    put(log, ("k", "old"))
    log.roll(NOW_MS)
    assert run(cleaner, log) is log
    clean_to, kept = log.end_offset, log.end_offset - 1
    log.truncate_to(Offset(kept), now_ms=NOW_MS)
    assert log.clean_to == kept
    for value in ("new", "newer"):
        put(log, ("other", value))
    log.roll(NOW_MS)
    assert log.end_offset > clean_to
    log.update_config(config(cleanup_policy="compact", segment_bytes=4096, min_cleanable_dirty_ratio=0))
    assert run(cleaner, log) is log
    assert [each for each in stored(log) if each[1] == "other"] == [(kept + 1, "other", "newer")]


@pytest.mark.parametrize("is_noted_before", [False, True], ids=["checkpoint then truncation", "noted, then truncated"])
def test_what_grows_again_after_a_truncation_is_dirty_after_a_crash_too(
    tmp_path: Path, *, is_noted_before: bool
) -> None:
    directories = LogDirectories.open([tmp_path], node_id=1)
    log = filled(log_in(directories, used=COMPACT))
    assert run(Cleaner(memory_bytes=MEMORY, checkpointing=directories.checkpointing), log) is log
    noted = Checkpoints.of_clean_logs(str(tmp_path), [log], directories.checkpointing)
    log.truncate_to(Offset(100), now_ms=NOW_MS)
    if is_noted_before:
        noted.write()
    filled(log)
    assert read_offsets(str(tmp_path), CLEANER_OFFSETS) == {PARTITION: log.clean_to}
    assert log.clean_to is not None
    assert log.clean_to <= 100
    crash(directories)
    assert log_in(LogDirectories.open([tmp_path], node_id=1), used=COMPACT).clean_to == log.clean_to


@pytest.mark.parametrize("is_noted_before", [False, True], ids=["checkpoint then deletion", "noted, then deleted"])
def test_a_new_topic_does_not_inherit_how_far_its_namesake_was_clean(tmp_path: Path, *, is_noted_before: bool) -> None:
    directories = LogDirectories.open([tmp_path], node_id=1)
    log = filled(log_in(directories, used=COMPACT))
    assert run(Cleaner(memory_bytes=MEMORY, checkpointing=directories.checkpointing), log) is log
    noted = Checkpoints.of_clean_logs(str(tmp_path), [log], directories.checkpointing)
    directories.delete(log)
    job = directories.prepare(PARTITION, topic_id=TopicId(bytes(16)), config=COMPACT, now_ms=NOW_MS)
    job.run()
    forget_offsets_of([job])
    namesake = filled(directories.settle(job))
    if is_noted_before:
        noted.write()
    assert namesake.clean_to is None
    crash(directories)
    directories = LogDirectories.open([tmp_path], node_id=1)
    again = log_in(directories, topic_id=TopicId(bytes(16)), used=COMPACT)
    assert again.clean_to is None
    directories.close()


@pytest.mark.parametrize("at", ["rewrite", "sync"])
def test_a_log_that_is_truncated_during_a_round_is_not_clean_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """Nothing that was cut comes back, although a segment that was cut is full again and sealed as before."""
    log = dirty_log(tmp_path)
    cut = log.segments[{"rewrite": 0, "sync": -2}[at]]
    steps = 1 if at == "rewrite" else len(log.segments) - 1
    where, name = {"rewrite": (rewriting.Round, "rewrite"), "sync": (cleaning, "sync_path")}[at]
    before = getattr(where, name)

    def step(*given: object) -> object:
        nonlocal steps
        made = before(*given)
        steps -= 1
        if steps == 0:
            log.truncate_to(Offset(cut.base_offset + 1), now_ms=NOW_MS)
            for number in range(300):
                put(log, (f"new{number}", "v" * 50))
        return made

    monkeypatch.setattr(where, name, step)
    assert run(Cleaner(memory_bytes=MEMORY), log) is None
    assert steps <= 0
    assert log.clean_to is None
    assert [key for offset, key, _ in stored(log) if offset >= log.end_offset - 300] == [f"new{n}" for n in range(300)]
    assert [offset for offset, _, _ in stored(log)] == sorted({offset for offset, _, _ in stored(log)})
    assert not list(Path(log.path).glob("*.cleaned"))


def test_a_log_that_is_truncated_while_it_is_read_is_not_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = dirty_log(tmp_path)
    build_map = rewriting.Round.build_map

    def cut_and_build_map(work: rewriting.Round) -> None:
        log.truncate_to(Offset(log.segments[0].base_offset + 5), now_ms=NOW_MS)
        build_map(work)

    cleaner = Cleaner(memory_bytes=MEMORY)
    with monkeypatch.context() as patch:
        patch.setattr(rewriting.Round, "build_map", cut_and_build_map)
        assert run(cleaner, log) is None
    assert run(cleaner, filled(log)) is log


def test_a_log_that_does_not_ask_for_it_is_not_compacted(tmp_path: Path) -> None:
    log = dirty_log(tmp_path)
    log.update_config(config(cleanup_policy="delete"))
    assert run(Cleaner(memory_bytes=MEMORY), log) is None


def test_compact_and_delete_does_both(tmp_path: Path) -> None:
    log = create(tmp_path, config(cleanup_policy="compact,delete", segment_bytes=4096, retention_ms=HOUR_MS))
    for number in range(300):
        put(log, (f"k{number % 7}", f"v{number}"))
    assert run(Cleaner(memory_bytes=MEMORY), log) is log
    cleaned = stored(log)
    assert len(cleaned) < 300
    assert log.delete_old_segments(AGES_MS, log.end_offset) > 0  # an emptied segment is as old as its file
    assert stored(log) == []
    assert log.end_offset == 300


def test_a_log_that_cannot_be_read_is_set_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = dirty_log(tmp_path)
    with open(log.segments[0].path, "r+b") as file:
        file.seek(8)
        file.write(struct.pack(">i", 1 << 30))
    cleaner = Cleaner(memory_bytes=MEMORY)
    assert run(cleaner, log) is None
    assert "cannot be compacted" in caplog.text
    caplog.clear()
    assert run(cleaner, log) is None
    assert not caplog.records


@pytest.mark.parametrize("batch_count", [0, 100])
def test_a_topic_made_anew_is_not_touched_by_the_compaction_of_its_namesake(tmp_path: Path, batch_count: int) -> None:
    directories = LogDirectories.open([tmp_path], node_id=1)
    log = log_in(directories, used=COMPACT)
    for number in range(300):
        put(log, (f"k{number % 3}", "v" * 50))
    old = log.segments[:1]
    work = begin(log, log.segments[:-1], dirt_of(log), now_ms=NOW_MS, memory_bytes=MEMORY)
    work.build_map()
    directories.delete(log)
    anew = log_in(directories, topic_id=TopicId(bytes(16)), used=COMPACT)
    for number in range(batch_count):
        put(anew, (f"k{number % 3}", "v" * 50))
    before = stored(anew)
    if batch_count:
        assert not swap(log, old, work.rewrite([Source(old[0].path, 0, old[0].size)]), NOW_MS)
    else:
        with pytest.raises(CorruptBatch, match="ends at byte 0"):
            work.rewrite([Source(old[0].path, 0, old[0].size)])
    assert not list(tmp_path.glob("*/*.cleaned"))
    assert stored(anew) == before
    directories.close()
