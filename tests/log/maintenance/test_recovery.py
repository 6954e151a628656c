"""After a crash the log holds every whole batch that was written, and nothing else."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path

import pytest

from moldau.log.partition_log import PartitionLog
from moldau.log.producers.producer_state import SentBatch
from tests.log.samples import NOW_MS, PARTITION, append, batch, config, contents, create, reopen

SMALL = config(segment_bytes=700, index_interval_bytes=100)


def files(folder: Path, *suffixes: str) -> dict[str, bytes]:
    partition = folder / str(PARTITION)
    return {path.name: path.read_bytes() for path in sorted(partition.iterdir()) if path.name.endswith(suffixes)}


def fill(log: PartitionLog, count: int = 12) -> list[tuple[int, bytes]]:
    values = [b"%d" % number * 40 for number in range(count)]
    for number, value in enumerate(values):
        append(log, value, leader_epoch=number // 4)
    return list(enumerate(values))


def test_a_tail_cut_at_any_byte_loses_the_last_batch_alone(tmp_path: Path) -> None:
    log = create(tmp_path / "whole")
    written = fill(log, 4)
    log.close()
    path = Path(log.active.path)
    size, last = path.stat().st_size, len(batch([written[-1][1]]))
    for cut in range(size - last, size):
        folder = tmp_path / f"cut-{cut}"
        shutil.copytree(tmp_path / "whole", folder)
        os.truncate(folder / path.relative_to(tmp_path / "whole"), cut)
        recovered = reopen(folder, clean=False)
        assert (contents(recovered), recovered.end_offset) == (written[:-1], 3)
        append(recovered, b"next")
        assert contents(recovered)[-1] == (3, b"next")


def test_a_flipped_bit_ends_the_log_there_and_says_what_is_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = create(tmp_path, SMALL)
    written = fill(log)
    path, at = Path(log.segments[1].path), 200
    log.flush_point()  # nothing is synced, so the recovery point stays behind
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 4]))
    second = log.segments[1].base_offset
    with caplog.at_level(logging.WARNING):
        recovered = reopen(tmp_path, SMALL, clean=False, recovery_point=second)
    lost = next(offset for offset, _ in written[second:] if offset >= recovered.end_offset)
    assert contents(recovered) == written[:lost]
    assert caplog.messages[0].startswith(f"{path}: no whole, sound batch at byte ")
    assert len(recovered.segments) == 2


def flip(path: Path, at: int, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << bit
    path.write_bytes(data)


@pytest.mark.parametrize("slot", [0, 3, 5, 11])
@pytest.mark.parametrize("segments", ["one", "many"])
def test_a_flipped_bit_in_an_offset_ends_the_log_there(tmp_path: Path, segments: str, slot: int) -> None:
    """Checksums don't cover base offsets."""
    settings = SMALL if segments == "many" else config()
    log = create(tmp_path / "whole", settings)
    written = fill(log)
    log.close()
    folder = next(each for each in reversed(log.segments) if each.base_offset <= slot)
    at = (slot - folder.base_offset) * len(batch([written[0][1]]))
    path = Path(folder.path)
    if slot == 11:
        at = path.stat().st_size - len(batch([written[-1][1]]))
    for bit in range(64):
        damaged = tmp_path / f"bit-{bit}"
        shutil.copytree(tmp_path / "whole", damaged)
        flip(damaged / path.relative_to(tmp_path / "whole"), at + 7 - bit // 8, bit % 8)
        recovered = reopen(damaged, settings, clean=False, recovery_point=folder.base_offset)
        assert contents(recovered) == written[:slot], bit
        assert recovered.end_offset == slot
        append(recovered, b"next")
        assert contents(recovered)[-1] == (slot, b"next")
        shutil.rmtree(damaged)


def test_a_flipped_bit_in_an_epoch_ends_the_log_there(tmp_path: Path) -> None:
    log = create(tmp_path / "whole")
    written = fill(log)
    log.close()
    path, size = Path(log.active.path), len(batch([written[0][1]]))
    for bit in range(31):
        damaged = tmp_path / f"bit-{bit}"
        shutil.copytree(tmp_path / "whole", damaged)
        # The sixth is of epoch 1, and so is the seventh: whatever becomes of its epoch is above or below both.
        flip(damaged / path.relative_to(tmp_path / "whole"), 5 * size + 12 + 3 - bit // 8, bit % 8)
        recovered = reopen(damaged, clean=False)
        assert contents(recovered) == written[:5], bit
        assert recovered.epochs.entries == log.epochs.entries[:2]
        shutil.rmtree(damaged)


def follow(log: PartitionLog, *offsets: int) -> None:
    for offset in offsets:
        log.append_as_follower(batch([b"x"], base_offset=offset, leader_epoch=0), now_ms=NOW_MS)


def test_gaps_that_compaction_left_are_no_damage(tmp_path: Path) -> None:
    log = create(tmp_path, config(cleanup_policy="compact"))
    follow(log, 0, 1, 5, 9)
    log.close()
    assert [offset for offset, _ in contents(reopen(tmp_path, log.config, clean=False))] == [0, 1, 5, 9]
    # A topic that was compacted once: only after the last batch nothing tells a gap from damage.
    assert [offset for offset, _ in contents(reopen(tmp_path, config(), clean=False))] == [0, 1, 5]


@pytest.mark.parametrize("left", [0, 1])
def test_a_segment_that_power_left_without_its_end_ends_the_log(tmp_path: Path, left: int) -> None:
    """All batches that are left are whole: only where the next segment begins shows that some are missing."""
    log = create(tmp_path / "whole", SMALL)
    written = fill(log)
    log.close()
    second, third = log.segments[1:3]
    end = second.base_offset + left
    cut = tmp_path / "cut"
    shutil.copytree(tmp_path / "whole", cut)
    os.truncate(cut / Path(second.path).relative_to(tmp_path / "whole"), left * len(batch([written[0][1]])))
    recovered = reopen(cut, SMALL, clean=False, recovery_point=second.base_offset, may_have_holes=True)
    assert (contents(recovered), recovered.end_offset) == (written[:end], end)
    append(recovered, b"next")
    assert contents(recovered)[-1] == (end, b"next")
    assert third.base_offset not in [each.base_offset for each in recovered.segments]


@pytest.mark.parametrize(
    ("cleanup_policy", "is_synced", "may_have_holes"),
    [("compact", False, True), ("delete", True, True), ("delete", False, False)],
)
def test_a_gap_between_segments_that_power_did_not_leave_is_no_damage(
    tmp_path: Path, cleanup_policy: str, is_synced: bool, may_have_holes: bool
) -> None:
    """Compaction left it, in this log or in the one that it was copied from."""
    settings = config(segment_bytes=150, cleanup_policy=cleanup_policy)
    log = create(tmp_path, settings)
    follow(log, 0, 1, 5, 6)
    log.close()
    assert [each.base_offset for each in log.segments] == [0, 5]
    Path(log.segments[0].prefix + ".txnindex").write_bytes(b"damaged")  # so that it is scanned, synced or not
    point = 5 if is_synced else 0
    recovered = reopen(tmp_path, settings, clean=False, recovery_point=point, may_have_holes=may_have_holes)
    assert [offset for offset, _ in contents(recovered)] == [0, 1, 5, 6]


def test_below_the_recovery_point_nothing_is_read(tmp_path: Path) -> None:
    log = create(tmp_path, SMALL)
    fill(log)
    log.flush()
    first = Path(log.segments[0].path)
    first.write_bytes(bytes(first.stat().st_size))
    recovered = reopen(tmp_path, SMALL, clean=False, recovery_point=log.recovery_point)
    assert recovered.end_offset == 12


def test_recovery_builds_the_files_that_a_clean_stop_leaves(tmp_path: Path) -> None:
    log = create(tmp_path, SMALL)
    fill(log)
    log.append_as_leader(batch([b"idempotent"], producer=(9, 0, 0)), leader_epoch=3, now_ms=NOW_MS)
    crashed = tmp_path / "crashed"
    shutil.copytree(tmp_path / str(PARTITION), crashed / str(PARTITION))
    log.close()
    for name in ("index", "timeindex"):
        for path in (crashed / str(PARTITION)).glob(f"*.{name}"):
            path.unlink()
    for path in (crashed / str(PARTITION)).glob("*.snapshot"):
        path.unlink()
    (crashed / str(PARTITION) / "leader-epoch-checkpoint").unlink()
    reopen(crashed, SMALL, clean=False)
    suffixes = (".log", ".index", ".timeindex", ".snapshot", "checkpoint")
    assert files(crashed, *suffixes) == files(tmp_path, *suffixes)


@pytest.mark.parametrize("damage", [b"", b"\xff" * 7, b"\xff" * 8, b"\x00\x00\x00\x05\x7f\xff\xff\xff"])
def test_a_missing_or_damaged_index_is_rebuilt_even_after_a_clean_stop(tmp_path: Path, damage: bytes) -> None:
    log = create(tmp_path, SMALL)
    written = fill(log)
    log.close()
    before = files(tmp_path, ".index", ".timeindex")
    path = Path(log.active.offset_index.entries.path)
    if damage:
        path.write_bytes(damage)
    else:
        path.unlink()
    recovered = reopen(tmp_path, SMALL)
    assert contents(recovered) == written
    assert files(tmp_path, ".index", ".timeindex") == before


def test_an_index_that_lies_is_found_out_when_it_is_used(tmp_path: Path) -> None:
    log = create(tmp_path, config(index_interval_bytes=100))
    written = fill(log)
    log.close()
    path = Path(log.active.offset_index.entries.path)
    entries = bytearray(path.read_bytes())
    entries[7] ^= 1
    path.write_bytes(entries)
    recovered = reopen(tmp_path)
    assert [contents(recovered, start=offset) for offset in range(12)] == [written[offset:] for offset in range(12)]


def test_what_was_to_be_deleted_is_and_an_unfinished_cleaning_is_undone(tmp_path: Path) -> None:
    log = create(tmp_path)
    written = fill(log, 3)
    log.close()
    folder = tmp_path / str(PARTITION)
    for name in ("9.log.deleted", "00000000000000000000.log.cleaned", "00000000000000000000.index.cleaned", "x.tmp"):
        (folder / name).write_bytes(b"leftover")
    assert contents(reopen(tmp_path)) == written
    assert not [path for path in folder.iterdir() if path.suffix in (".deleted", ".cleaned", ".tmp")]


def test_a_swap_that_was_begun_is_finished(tmp_path: Path) -> None:
    log = create(tmp_path, SMALL)
    written = fill(log)
    log.close()
    folder = tmp_path / str(PARTITION)
    first, second = log.segments[0], log.segments[1]
    Path(first.path + ".swap").write_bytes(Path(first.path).read_bytes() + Path(second.path).read_bytes())
    recovered = reopen(tmp_path, SMALL)
    assert contents(recovered) == written
    assert not list(folder.glob("*.swap"))
    assert second.base_offset not in [segment.base_offset for segment in recovered.segments]


def test_producers_are_remembered_through_a_crash(tmp_path: Path) -> None:
    log = create(tmp_path, SMALL)
    for sequence in range(7):
        log.append_as_leader(batch([b"x" * 150], producer=(9, 1, sequence)), leader_epoch=0, now_ms=NOW_MS)
    recovered = reopen(tmp_path, SMALL, clean=False)
    producer = recovered.producers.producers[9]
    assert (producer.epoch, producer.batches) == (1, [SentBatch(n, n, n, n, NOW_MS) for n in range(2, 7)])
    retried = recovered.append_as_leader(batch([b"x" * 150], producer=(9, 1, 6)), leader_epoch=0, now_ms=NOW_MS)
    assert (retried.first_offset, retried.duplicate) == (6, True)


def test_a_folder_without_any_segment_goes_on_at_the_logs_start(tmp_path: Path) -> None:
    log = create(tmp_path)
    fill(log, 3)
    log.close()
    for path in (tmp_path / str(PARTITION)).glob("0*"):
        path.unlink()
    recovered = reopen(tmp_path, log_start_offset=2)
    assert (recovered.log_start_offset, recovered.end_offset, contents(recovered)) == (2, 2, [])


def test_a_damaged_epoch_file_is_read_from_the_batches(tmp_path: Path) -> None:
    log = create(tmp_path, SMALL)
    fill(log)
    log.close()
    (tmp_path / str(PARTITION) / "leader-epoch-checkpoint").write_text("0\n5\nnonsense\n")
    assert reopen(tmp_path, SMALL).epochs.entries == log.epochs.entries


def test_a_segment_is_read_once_whoever_wrote_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    indexed_often = config(index_interval_bytes=100)  # or the end of the log is looked for by reading all of it
    log = create(tmp_path, indexed_often)
    fill(log)
    read: list[int] = []
    pread = os.pread

    def counting(fd: int, size: int, position: int) -> bytes:
        read.append(len(got := pread(fd, size, position)))
        return got

    monkeypatch.setattr(os, "pread", counting)
    assert reopen(tmp_path, indexed_often, clean=False).end_offset == 12
    assert sum(read) < 2 * Path(log.active.path).stat().st_size
