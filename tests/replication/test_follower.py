"""A follower writes what its leader has, drops what it has not, and follows what is committed."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from moldau.core.errors import ErrorCode
from moldau.core.ids import Offset
from moldau.log.leader_epochs import EpochEnd, EpochStart
from moldau.log.partition_log import PartitionLog
from moldau.log.producers.end_transaction_marker import encode_marker
from moldau.replication.assignment import Assignment
from moldau.replication.follower import Follower, Outcome, Position, truncation_offset
from moldau.replication.partition import LeaderAndEpoch, Partition
from moldau.wire.batch import CONTROL, TRANSACTIONAL, Record, build_batch
from moldau.wire.messages.fetch import EpochEndOffset, PartitionData
from tests.log.samples import NOW_MS, batch, config, create
from tests.replication.exchanges import Asked, catch_up, content, fetch_once, replica, serve

A, B, C = 1, 2, 3
BOTH = Assignment((A, B), frozenset({A, B}))


def pair(folder: Path, **used: object) -> tuple[Partition, Follower]:
    settings = config(min_insync_replicas=1, **used)
    leader = replica(folder, A, leader=A, assignment=BOTH, used=settings)
    return leader, Follower(replica(folder, B, leader=A, used=settings))


def elect(partition: Partition, leader: int, epoch: int, *isr: int) -> None:
    assignment = Assignment((A, B), frozenset(isr or {A, B}), epoch)
    partition.lead(LeaderAndEpoch(leader, epoch), assignment, now_ms=NOW_MS)


def append(leader: Partition, *values: bytes) -> None:
    for value in values:
        leader.append(batch([value]), now_ms=NOW_MS)


def test_a_follower_copies_its_leader_byte_for_byte(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    append(leader, *[b"v%d" % number for number in range(20)])
    assert fetch_once(leader, follower) is Outcome.APPENDED
    assert follower.partition.log.end_offset == 20
    assert follower.partition.high_watermark == 0, "nothing was committed when the leader answered"
    assert fetch_once(leader, follower) is Outcome.NOTHING
    assert leader.high_watermark == follower.partition.high_watermark == 20
    assert content(leader) == content(follower.partition)
    assert follower.is_in_sync


def test_a_fetch_of_many_batches_is_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leader, follower = pair(tmp_path)
    append(leader, b"first")
    catch_up(leader, follower)
    append(leader, *[b"x" * 100] * 50)
    position = follower.position()
    data = serve(leader, B, position)
    written: list[int] = []
    pwrite = os.pwrite

    def counted(fd: int, view: memoryview, at: int) -> int:
        written.append(len(view))
        return pwrite(fd, view, at)

    monkeypatch.setattr(os, "pwrite", counted)
    assert follower.answered(position, data, now_ms=NOW_MS) is Outcome.APPENDED
    assert written == [len(data.records or b"")]


def test_a_follower_begins_where_records_were_deleted_inside_a_batch(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    for number in range(3):
        leader.append(batch([b"%d" % number] * 10), now_ms=NOW_MS)
    catch_up(leader, Follower(replica(tmp_path / "other", B, leader=A)))
    leader.log.advance_log_start(Offset(15), now_ms=NOW_MS)
    catch_up(leader, follower)
    log = follower.partition.log
    assert (log.log_start_offset, log.end_offset, follower.partition.high_watermark) == (15, 30, 30)
    assert content(follower.partition) == content(leader)


def test_a_batch_that_the_log_has_already_is_refused(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    leader.append(batch([b"a"] * 10), now_ms=NOW_MS)
    position = follower.position()
    data = serve(leader, B, position)
    assert follower.answered(position, data, now_ms=NOW_MS) is Outcome.APPENDED
    assert follower.answered(follower.position(), data, now_ms=NOW_MS) is Outcome.REFUSED
    assert follower.partition.log.end_offset == 10


@pytest.mark.parametrize("bytes_max", [1, 300, 1_000])
def test_segments_roll_where_the_leaders_do(tmp_path: Path, bytes_max: int) -> None:
    leader, follower = pair(tmp_path, segment_bytes=700, index_interval_bytes=100)
    append(leader, *[b"v" * (1 + number % 90) for number in range(60)])
    catch_up(leader, follower, bytes_max=bytes_max)
    theirs = [(each.base_offset, each.size) for each in leader.log.segments]
    assert [(each.base_offset, each.size) for each in follower.partition.log.segments] == theirs
    assert content(leader) == content(follower.partition)


def test_a_batch_that_was_cut_comes_whole_the_next_time(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    append(leader, b"a" * 100, b"b" * 100)
    position = follower.position()
    data = serve(leader, B, position)
    assert isinstance(data.records, memoryview)
    data.records = data.records[:-20]
    assert follower.answered(position, data, now_ms=NOW_MS) is Outcome.APPENDED
    assert follower.partition.log.end_offset == 1
    catch_up(leader, follower)
    assert content(leader) == content(follower.partition)


def test_corrupt_records_are_not_written_and_asked_for_again(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    append(leader, b"a" * 100)
    position = follower.position()
    data = serve(leader, B, position)
    assert isinstance(data.records, memoryview)
    data.records[90] ^= 1
    assert follower.answered(position, data, now_ms=NOW_MS) is Outcome.REFUSED
    assert follower.partition.log.end_offset == 0
    assert "corrupt" in str(follower.refusal)
    catch_up(leader, follower)
    assert follower.partition.log.end_offset == 1


def test_an_answer_to_another_question_is_left_alone(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    append(leader, b"a")
    position = follower.position()
    data = serve(leader, B, position)
    assert follower.answered(position._replace(leader_epoch=9), data, now_ms=NOW_MS) is Outcome.OUTDATED
    assert follower.answered(position, data, now_ms=NOW_MS) is Outcome.APPENDED
    assert follower.answered(position, data, now_ms=NOW_MS) is Outcome.OUTDATED, "it is written already"
    elect(follower.partition, B, 1)
    assert not follower.is_current
    assert follower.answered(follower.position(), data, now_ms=NOW_MS) is Outcome.OUTDATED


def test_batches_of_a_later_epoch_than_known_wait_for_it(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    append(leader, b"a")
    elect(leader, A, 1)
    append(leader, b"b")
    position = follower.position()
    data = serve(leader, B, position._replace(leader_epoch=1))
    assert follower.answered(position, data, now_ms=NOW_MS) is Outcome.APPENDED
    assert follower.partition.log.end_offset == 1


def test_kip_101_a_restarted_follower_keeps_what_was_committed(tmp_path: Path) -> None:
    """The first scenario: B has m2 but does not know that it is committed, restarts, and is elected."""
    leader, follower = pair(tmp_path)
    append(leader, b"m1", b"m2")
    fetch_once(leader, follower)
    assert leader.high_watermark == 0
    serve(leader, B, follower.position())  # the leader commits, and its answer is lost
    assert leader.high_watermark == 2
    again = replica(tmp_path, B, leader=A, log=follower.partition.log, high_watermark=0)
    restarted = Follower(again)
    restarted.begin(now_ms=NOW_MS)
    assert again.log.end_offset == 2, "it truncates nothing before its leader says so"
    elect(again, B, 1, B)
    assert again.high_watermark == 2
    elect(leader, B, 1)
    old = Follower(leader)
    append(again, b"m3")
    catch_up(again, old)
    assert content(leader) == content(again)


def test_kip_101_histories_that_part_are_joined_again(tmp_path: Path) -> None:
    """The second scenario: A has m2 alone, B is elected without it and writes m3 at its offset."""
    leader, follower = pair(tmp_path)
    append(leader, b"m1")
    catch_up(leader, follower)
    append(leader, b"m2")
    new = follower.partition
    elect(new, B, 1, B)
    append(new, b"m3")
    elect(leader, B, 1)
    old = Follower(leader)
    assert fetch_once(new, old) is Outcome.TRUNCATED
    assert leader.log.end_offset == 1
    elect(new, B, 2)
    old = _again(leader, 2)
    catch_up(new, old)
    assert content(leader) == content(new)
    assert leader.log.epochs.entries == new.log.epochs.entries[:2]


def _again(partition: Partition, epoch: int) -> Follower:
    elect(partition, B, epoch)
    return Follower(partition)


def test_kip_279_epochs_that_the_leader_never_saw(tmp_path: Path) -> None:
    """Both led in turn without the other: the follower steps back epoch by epoch until they agree."""
    leader, follower = pair(tmp_path)
    append(leader, b"common")
    catch_up(leader, follower)
    mine, theirs = leader, follower.partition
    for epoch in (1, 3, 5):
        elect(mine, A, epoch, A)
        append(mine, b"mine", b"mine")
    for epoch in (2, 4, 6):
        elect(theirs, B, epoch, B)
        append(theirs, b"theirs")
    elect(theirs, B, 7, B)
    append(theirs, b"last")
    elect(theirs, B, 7)
    elect(mine, B, 7)
    theirs.lead(LeaderAndEpoch(B, 7), Assignment((A, B), frozenset({B}), 8), now_ms=NOW_MS)
    catch_up(theirs, Follower(mine))
    assert content(mine) == content(theirs)
    records = [entry for entry in theirs.log.epochs.entries if entry.start_offset < theirs.log.end_offset]
    assert mine.log.epochs.entries == records


def test_an_epoch_without_records_holds_nobody_up(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    append(leader, b"a")
    catch_up(leader, follower)
    elect(leader, A, 1)  # it led, and wrote nothing
    new = follower.partition
    elect(new, B, 2, B)
    append(new, b"b")
    elect(leader, B, 2)
    catch_up(new, Follower(leader))
    assert content(leader) == content(new)
    assert leader.log.epochs.entries == [EpochStart(0, 0), EpochStart(2, 1)]


def test_a_follower_behind_its_leaders_start_begins_anew(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path, segment_bytes=200)
    append(leader, b"a" * 50, b"b" * 50)
    catch_up(leader, follower)
    elect(leader, A, 1, A)
    append(leader, *[b"c" * 50] * 10)
    leader.delete_records(Offset(8), now_ms=NOW_MS)
    leader.lead(LeaderAndEpoch(A, 1), Assignment((A, B), frozenset({A}), 2), now_ms=NOW_MS)
    elect(follower.partition, A, 1)
    late = Follower(follower.partition)
    assert fetch_once(leader, late) is Outcome.TRUNCATED
    log = follower.partition.log
    assert (log.log_start_offset, log.end_offset, follower.partition.high_watermark) == (8, 8, 8)
    catch_up(leader, late)
    assert content(leader) == content(follower.partition)
    assert log.end_offset == 12


def test_a_follower_ahead_of_its_leaders_end_goes_back(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    append(leader, b"a")
    catch_up(leader, follower)
    follower.partition.log.append_as_follower(batch([b"lost"], base_offset=1, leader_epoch=0), now_ms=NOW_MS)
    assert fetch_once(leader, follower) is Outcome.TRUNCATED
    assert follower.partition.log.end_offset == 1


def test_the_leaders_start_is_followed(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path, segment_bytes=200)
    append(leader, *[b"c" * 50] * 10)
    catch_up(leader, follower)
    assert leader.delete_records(Offset(5), now_ms=NOW_MS) == 5
    fetch_once(leader, follower)
    assert follower.partition.log.log_start_offset == 5


def test_a_log_without_epochs_relies_on_what_is_committed(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    append(leader, b"a", b"b")
    fetch_once(leader, follower)
    log = follower.partition.log
    log.epochs.clear()
    again = Follower(replica(tmp_path, B, leader=A, log=log, high_watermark=1))
    again.begin(now_ms=NOW_MS)
    assert again.partition.log.end_offset == 1
    assert again.position() == Position(0, Offset(1), -1, Offset(0))


def test_errors_are_told_and_change_nothing(tmp_path: Path) -> None:
    _, follower = pair(tmp_path)
    data = PartitionData(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert follower.answered(follower.position(), data, now_ms=NOW_MS) is Outcome.REFUSED
    assert follower.refusal == "NOT_LEADER_OR_FOLLOWER"


def test_producers_and_aborted_transactions_are_known_to_a_follower(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    leader.append(batch([b"idempotent"], producer=(7, 0, 0)), now_ms=NOW_MS)
    leader.append(batch([b"open"], producer=(8, 0, 0), attributes=TRANSACTIONAL), now_ms=NOW_MS, verified=True)
    key, value = encode_marker(is_commit=False, coordinator_epoch=3)
    marker = build_batch(
        [Record(0, NOW_MS, key, value)], producer_id=8, producer_epoch=0, attributes=TRANSACTIONAL | CONTROL
    )
    leader.append_own(memoryview(marker), now_ms=NOW_MS)
    leader.append(batch([b"after"], producer=(7, 0, 1)), now_ms=NOW_MS)
    catch_up(leader, follower)
    mine, theirs = follower.partition.log, leader.log
    assert mine.aborted_transactions(Offset(0), Offset(9)) == theirs.aborted_transactions(Offset(0), Offset(9)) != []
    assert {key: each.batches for key, each in mine.producers.producers.items()} == {
        key: each.batches for key, each in theirs.producers.producers.items()
    }
    assert follower.partition.last_stable_offset == leader.last_stable_offset == 4


def log_with(folder: Path, epochs: list[EpochStart], end: int) -> PartitionLog:
    log = create(folder, config())
    for offset in range(end):
        epoch = max(each.epoch for each in epochs if each.start_offset <= offset)
        log.append_as_follower(batch([b"v"], base_offset=offset, leader_epoch=epoch), now_ms=NOW_MS)
    return log


@pytest.mark.parametrize(
    ("leader", "expected"),
    [
        (EpochEnd(3, 5), 5),  # the same epoch, shorter
        (EpochEnd(3, 50), 10),  # the same epoch, longer: nothing to drop
        (EpochEnd(1, 4), 4),  # an epoch that both know
        (EpochEnd(1, 9), 6),  # which ended earlier here
        (EpochEnd(2, 8), 6),  # an epoch that is not known here: to the end of the one before
        (EpochEnd(0, 2), 0),  # before all that is known here: there is nothing in common
    ],
)
def test_where_histories_part(tmp_path: Path, leader: EpochEnd, expected: int) -> None:
    log = log_with(tmp_path, [EpochStart(1, 0), EpochStart(3, 6)], 10)
    assert truncation_offset(log, leader) == min(expected, 10)


def test_a_leader_answers_where_histories_part(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    append(leader, b"a", b"b")
    elect(leader, A, 4, A)
    append(leader, b"c")
    leader.lead(LeaderAndEpoch(A, 4), Assignment((A, B), frozenset({A}), 9), now_ms=NOW_MS)
    ask = Position(4, Offset(3), 2, Offset(0))
    assert serve(leader, B, ask).diverging_epoch == EpochEndOffset(epoch=0, end_offset=2)
    assert serve(leader, B, ask._replace(last_epoch=0)).diverging_epoch == EpochEndOffset(epoch=0, end_offset=2)
    assert serve(leader, B, ask._replace(last_epoch=4)).diverging_epoch == EpochEndOffset()
    assert serve(leader, B, ask._replace(last_epoch=9)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert follower.partition.log.end_offset == 0


@pytest.mark.parametrize(
    ("broker_id", "position", "error"),
    [
        (C, Position(0, Offset(0), -1, Offset(0)), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (C, Position(-1, Offset(0), -1, Offset(0)), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (B, Position(1, Offset(0), -1, Offset(0)), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (B, Position(0, Offset(7), -1, Offset(0)), ErrorCode.OFFSET_OUT_OF_RANGE),
    ],
)
def test_a_leader_refuses(tmp_path: Path, broker_id: int, position: Position, error: ErrorCode) -> None:
    leader, _ = pair(tmp_path)
    assert serve(leader, broker_id, position).error_code == error


def test_a_leader_of_a_later_epoch_refuses_the_earlier(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    elect(leader, A, 3)
    assert serve(leader, B, follower.position()).error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_fetch_is_noted_once_however_often_it_is_looked_at(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    append(leader, b"a")
    catch_up(leader, follower)
    assert leader.replicas is not None
    progress = leader.replicas.followers[B]
    serve(leader, B, follower.position()._replace(offset=Offset(0)), is_repeated=True)
    assert progress.log_end_offset == 1


def test_a_follower_that_caught_up_is_asked_into_the_isr(tmp_path: Path) -> None:
    leader = replica(tmp_path, A, leader=A, assignment=Assignment((A, B), frozenset({A})))
    follower = Follower(replica(tmp_path, B, leader=A))
    append(leader, b"a")
    asked = Asked()
    serve(leader, B, follower.position(), asked=asked)
    assert asked.changes == []
    catch_up(leader, follower)
    leader.replicas.pending = None  # type: ignore[union-attr]
    serve(leader, B, follower.position(), asked=asked)
    assert [[each.broker_id for each in change.isr] for change in asked.changes] == [[A, B]]


def test_a_full_disk_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leader, follower = pair(tmp_path)
    append(leader, b"a", b"b")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as disk:
        disk.setattr(os, "pwrite", full)
        assert fetch_once(leader, follower) is Outcome.REFUSED
    assert follower.partition.log.offline is None
    assert follower.is_current
    catch_up(leader, follower)
    assert content(leader) == content(follower.partition)


def test_a_leader_on_a_full_disk_tells_where_histories_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its epoch could not be noted, and the follower has records of an epoch that it never heard of."""
    leader, follower = pair(tmp_path)
    append(leader, b"a")
    catch_up(leader, follower)
    append(leader, b"only here")
    elect(follower.partition, B, 1)
    append(follower.partition, b"x", b"y")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as disk:
        disk.setattr("moldau.log.partition_log.write_leader_epochs", full)
        elect(leader, A, 2)
    assert leader.is_leader
    assert leader.log.epochs.latest == 0
    elect(follower.partition, A, 2)
    follower = Follower(follower.partition)
    assert fetch_once(leader, follower) is Outcome.TRUNCATED
    assert follower.partition.log.end_offset == 1
    catch_up(leader, follower)
    assert content(leader) == content(follower.partition)
