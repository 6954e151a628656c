"""What is appended and what is committed, in a partition with followers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import Offset
from moldau.log.directories.log_directories import LogDirectories
from moldau.log.producers.end_transaction_marker import encode_marker
from moldau.replication.partition import LeaderAndEpoch, Partition
from moldau.replication.replicas import UNCOMMITTED_APPENDS_MAX
from moldau.wire.batch import CONTROL, TRANSACTIONAL, Record, build_batch
from tests.log.samples import NOW_MS, batch, crash, log_in, reopen
from tests.replication.replicated import ALICE, ALL, BOB, LAG_MS, LEADER, assigned, fetch, fetch_all, replicated

PRODUCER = 7


class Heard:
    """A watcher that notes what it hears."""

    def __init__(self) -> None:
        self.events: list[int | str] = []

    def grown(self, _: Partition, size_bytes: int) -> None:
        self.events.append(size_bytes)

    def disturbed(self) -> None:
        self.events.append("disturbed")


def append(partition: Partition, *values: bytes) -> int:
    """Gives the bytes that were appended."""
    sent = batch(values or [b"v"])
    partition.append(sent, now_ms=NOW_MS)
    return len(sent)


def watch(partition: Partition) -> tuple[Heard, Heard]:
    """Who waits for records to be appended, and who for records to be committed."""
    appended, committed = Heard(), Heard()
    assert partition.replicas is not None
    partition.replicas.watchers[appended] = None
    partition.commit_watchers[committed] = None
    return appended, committed


def test_the_time_of_a_record_says_nothing_about_followers(tmp_path: Path) -> None:
    """A wall clock that jumps forward makes no follower late that has caught up, and is waited for until it joins."""
    partition = replicated(tmp_path, LEADER, min_isr=1)
    change = fetch(partition, ALICE, 0)
    assert change is not None
    partition.isr_refused(change, ErrorCode.INELIGIBLE_REPLICA)
    partition.append(batch([b"v"]), now_ms=NOW_MS + 3_600_000)
    assert partition.high_watermark == 0
    fetch(partition, ALICE, 1)
    assert partition.high_watermark == 1


def marker(*, commit: bool) -> memoryview:
    key, value = encode_marker(is_commit=commit, coordinator_epoch=0)
    return memoryview(
        build_batch(
            [Record(0, NOW_MS, key, value)], producer_id=PRODUCER, producer_epoch=0, attributes=TRANSACTIONAL | CONTROL
        )
    )


def test_followers_hear_of_what_is_appended_and_others_of_what_is_committed(tmp_path: Path) -> None:
    partition = replicated(tmp_path)
    appended, committed = watch(partition)
    sizes = [append(partition), append(partition, b"a", b"b")]
    assert (appended.events, committed.events, partition.high_watermark) == (sizes, [], 0)
    fetch(partition, ALICE, 3)
    fetch(partition, BOB, 1)
    assert (committed.events, partition.high_watermark) == (sizes[:1], 1)
    fetch(partition, BOB, 3)
    assert (appended.events, committed.events, partition.high_watermark) == (sizes, sizes, 3)


def test_the_high_watermark_does_not_go_back_for_a_replica_that_does(tmp_path: Path) -> None:
    partition = replicated(tmp_path)
    append(partition, b"a", b"b")
    fetch_all(partition)
    fetch(partition, BOB, 0)
    append(partition)
    assert partition.high_watermark == 2


def test_records_are_refused_before_the_append_with_too_few_replicas_in_sync(tmp_path: Path) -> None:
    partition = replicated(tmp_path, LEADER)
    with pytest.raises(ApiError) as refused:
        partition.check_in_sync()
    assert (refused.value.code, refused.value.message) == (
        ErrorCode.NOT_ENOUGH_REPLICAS,
        "The size of the current ISR : 1 is insufficient to satisfy the min.isr requirement of 2 for partition "
        "orders-0, live replica(s) broker.id are : Set(1)",
    )
    with pytest.raises(ApiError):
        partition.append_own(marker(commit=True), now_ms=NOW_MS)
    append(partition)
    assert (partition.log.end_offset, partition.high_watermark) == (1, 0), "acks=1 is taken, and not committed"


def test_a_lagging_replica_leaves_when_the_controller_agrees(tmp_path: Path) -> None:
    partition = replicated(tmp_path)
    append(partition)
    later = NOW_MS + LAG_MS + 1
    fetch(partition, ALICE, 1, now_ms=later)
    change = partition.shrink_isr(later)
    assert change is not None
    assert [each.broker_id for each in change.isr] == [LEADER, ALICE]
    assert partition.acknowledgement(Offset(1)) is None
    partition.isr_changed(change, assigned(LEADER, ALICE, partition_epoch=1), now_ms=later)
    assert partition.acknowledgement(Offset(1)) is ErrorCode.NONE


def test_a_replica_that_caught_up_asks_to_join(tmp_path: Path) -> None:
    partition = replicated(tmp_path, LEADER, ALICE)
    append(partition)
    fetch(partition, ALICE, 1)
    assert fetch(partition, BOB, 0) is None
    change = fetch(partition, BOB, 1)
    assert change is not None
    assert fetch(partition, BOB, 1) is None, "one change at a time"
    assert partition.isr_refused(change, ErrorCode.NOT_CONTROLLER), "ask again"
    partition.isr_changed(change, assigned(partition_epoch=1), now_ms=NOW_MS)
    assert partition.replicas is not None
    assert partition.replicas.isr == set(ALL)


def test_a_broker_without_a_replica_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ApiError) as refused:
        fetch(replicated(tmp_path), 9, 0)
    assert refused.value.code is ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_new_leader_knows_as_committed_what_its_checkpoint_says(tmp_path: Path) -> None:
    before = replicated(tmp_path)
    append(before, b"a", b"b", b"c")
    partition = replicated(tmp_path, log=reopen(tmp_path), high_watermark=1)
    assert (partition.log.end_offset, partition.high_watermark) == (3, 1)
    _, committed = watch(partition)
    fetch(partition, ALICE, 3)
    fetch(partition, BOB, 3)
    assert partition.high_watermark == 3
    assert len(committed.events) == 1
    assert isinstance(committed.events[0], int)
    assert committed.events[0] > 1_000_000, "nobody knows how much it is, so everybody looks"


def test_a_checkpoint_beyond_the_log_is_cut_to_it(tmp_path: Path) -> None:
    append(replicated(tmp_path))
    assert replicated(tmp_path, log=reopen(tmp_path), high_watermark=9).high_watermark == 1


def test_a_transaction_is_decided_for_readers_when_its_marker_is_committed(tmp_path: Path) -> None:
    partition = replicated(tmp_path)
    sent = batch([b"v"], attributes=TRANSACTIONAL, producer=(PRODUCER, 0, 0))
    partition.append(sent, now_ms=NOW_MS, verified=True)
    fetch_all(partition)
    partition.append_own(marker(commit=True), now_ms=NOW_MS)
    _, committed = watch(partition)
    assert (partition.high_watermark, partition.last_stable_offset) == (1, 0)
    fetch(partition, ALICE, 2)
    assert (partition.last_stable_offset, committed.events) == (0, [])
    fetch(partition, BOB, 2)
    assert (partition.last_stable_offset, committed.events) == (2, ["disturbed"])


def test_who_waits_hears_that_another_broker_leads(tmp_path: Path) -> None:
    partition = replicated(tmp_path)
    append(partition)
    appended, committed = watch(partition)
    partition.lead(LeaderAndEpoch(ALICE, 1), assigned(partition_epoch=1), now_ms=NOW_MS)
    assert appended.events == committed.events == ["disturbed"]
    assert partition.acknowledgement(Offset(1)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.replicas is None


def test_a_leader_that_is_left_alone_commits_by_itself(tmp_path: Path) -> None:
    partition = replicated(tmp_path)
    append(partition)
    partition.lead(LeaderAndEpoch(LEADER, 0), None, now_ms=NOW_MS)
    assert (partition.replicas, partition.high_watermark) == (None, 1)
    append(partition)
    assert partition.high_watermark == 2


def test_a_lone_leader_gets_followers(tmp_path: Path) -> None:
    partition = replicated(tmp_path)
    partition.lead(LeaderAndEpoch(LEADER, 0), None, now_ms=NOW_MS)
    append(partition)
    partition.lead(LeaderAndEpoch(LEADER, 0), assigned(LEADER, partition_epoch=3), now_ms=NOW_MS)
    append(partition)
    assert partition.high_watermark == 1, "min.insync.replicas"
    change = fetch(partition, BOB, 2)
    assert change is not None
    partition.isr_changed(change, assigned(LEADER, BOB, partition_epoch=4), now_ms=NOW_MS)
    assert partition.high_watermark == 2


def test_an_image_that_is_older_than_the_controllers_answer_changes_nothing(tmp_path: Path) -> None:
    partition = replicated(tmp_path, LEADER, ALICE)
    change = fetch(partition, BOB, 0)
    assert change is not None
    partition.isr_changed(change, assigned(partition_epoch=1), now_ms=NOW_MS)
    partition.lead(LeaderAndEpoch(LEADER, 0), assigned(LEADER, ALICE, partition_epoch=0), now_ms=NOW_MS)
    assert partition.replicas is not None
    assert partition.replicas.isr == set(ALL)


def test_a_follower_takes_the_high_watermark_from_its_leader_as_far_as_its_log_goes(tmp_path: Path) -> None:
    partition = replicated(tmp_path)
    append(partition, b"a", b"b", b"c")
    partition.lead(LeaderAndEpoch(ALICE, 1), assigned(partition_epoch=1), now_ms=NOW_MS)
    for said, known in ((2, 2), (1, 2), (9, 3)):
        partition.follow_high_watermark(Offset(said), 0)
        assert partition.high_watermark == known


def test_a_truncated_follower_knows_which_transactions_are_decided(tmp_path: Path) -> None:
    """The log reads its producers again, and knows nothing of the high watermark."""
    partition = replicated(tmp_path)
    sent = batch([b"v"], attributes=TRANSACTIONAL, producer=(PRODUCER, 0, 0))
    partition.append(sent, now_ms=NOW_MS, verified=True)
    partition.append_own(marker(commit=True), now_ms=NOW_MS)
    fetch_all(partition)
    append(partition)
    partition.lead(LeaderAndEpoch(ALICE, 1), assigned(partition_epoch=1), now_ms=NOW_MS)
    partition.truncate_to(Offset(2), now_ms=NOW_MS)
    assert (partition.log.end_offset, partition.high_watermark, partition.last_stable_offset) == (2, 2, 2)


def test_a_truncated_follower_has_nothing_committed_beyond_its_end(tmp_path: Path) -> None:
    partition = replicated(tmp_path)
    for _ in range(3):
        append(partition)
    partition.lead(LeaderAndEpoch(ALICE, 1), assigned(partition_epoch=1), now_ms=NOW_MS)
    partition.follow_high_watermark(Offset(3), 0)
    partition.truncate_to(Offset(2), now_ms=NOW_MS)
    assert (partition.log.end_offset, partition.high_watermark) == (2, 2)


@pytest.mark.parametrize("is_noted_before", [False, True], ids=["checkpoint then truncation", "noted, then truncated"])
@pytest.mark.parametrize("restarts", [False, True], ids=["truncates", "restarts"])
def test_what_a_follower_truncated_is_not_committed_after_a_crash(
    tmp_path: Path, *, is_noted_before: bool, restarts: bool
) -> None:
    """Its leader was elected uncleanly: records that came since are not committed because older ones were."""
    directories = LogDirectories.open([tmp_path], node_id=LEADER)
    partition = replicated(tmp_path, log=log_in(directories))
    directories.high_watermark_of = lambda _: partition.high_watermark
    for _ in range(3):
        append(partition)
    fetch_all(partition)
    noted = directories.checkpoints()
    if not is_noted_before:
        noted.write()
    partition.lead(LeaderAndEpoch(ALICE, 1), assigned(partition_epoch=1), now_ms=NOW_MS)
    if restarts:
        partition.restart_at(Offset(1), now_ms=NOW_MS)
    else:
        partition.truncate_to(Offset(1), now_ms=NOW_MS)
    partition.lead(LeaderAndEpoch(LEADER, 2), assigned(partition_epoch=2), now_ms=NOW_MS)
    for _ in range(3):
        append(partition)
    if is_noted_before:
        noted.write()
    crash(directories)
    directories = LogDirectories.open([tmp_path], node_id=LEADER)
    assert (log_in(directories).end_offset, directories.high_watermark(log_in(directories))) == (4, 1)
    directories.close()


def test_consumers_hear_of_a_part_of_what_a_new_leader_found(tmp_path: Path) -> None:
    before = replicated(tmp_path)
    for _ in range(4):
        append(before)
    partition = replicated(tmp_path, log=before.log)
    _, committed = watch(partition)
    for replica_id in (ALICE, BOB):
        fetch(partition, replica_id, 2)
    assert partition.high_watermark == 2
    assert len(committed.events) == 1
    assert committed.events[0] != 0, "who waits for a byte must look"


def test_consumers_hear_of_a_part_of_appends_that_were_counted_together(tmp_path: Path) -> None:
    partition = replicated(tmp_path)
    for _ in range(UNCOMMITTED_APPENDS_MAX + 10):
        append(partition)
    _, committed = watch(partition)
    for end in (UNCOMMITTED_APPENDS_MAX - 1, UNCOMMITTED_APPENDS_MAX + 5):
        for replica_id in (ALICE, BOB):
            fetch(partition, replica_id, end)
    assert partition.high_watermark == UNCOMMITTED_APPENDS_MAX + 5
    assert len(committed.events) == 2
    assert 0 not in committed.events


def test_a_replica_that_dies_before_it_joins_holds_nothing_back_for_ever(tmp_path: Path) -> None:
    partition = replicated(tmp_path, LEADER, min_isr=1)
    change = fetch(partition, ALICE, 0)
    assert change is not None
    partition.isr_refused(change, ErrorCode.INELIGIBLE_REPLICA)
    append(partition)
    assert partition.high_watermark == 0, "it is caught up, and may join at any time"
    assert partition.shrink_isr(NOW_MS + LAG_MS + 1) is None
    assert partition.high_watermark == 1


def test_a_leader_whose_disk_fails_as_its_epoch_begins_leads_nothing(tmp_path: Path) -> None:
    partition = replicated(tmp_path)
    append(partition)
    partition.log.on_failure = lambda _: partition.go_offline()
    shutil.rmtree(partition.log.path)
    partition.lead(LeaderAndEpoch(LEADER, 1), assigned(partition_epoch=1), now_ms=NOW_MS)
    assert partition.log.offline is not None
    assert (partition.is_leader, partition.replicas, partition.high_watermark) == (False, None, 0)


def test_a_lone_leader_whose_disk_fails_as_its_epoch_begins_commits_nothing(tmp_path: Path) -> None:
    partition = replicated(tmp_path)
    append(partition)
    shutil.rmtree(partition.log.path)
    partition.lead(LeaderAndEpoch(LEADER, 1), None, now_ms=NOW_MS)
    assert (partition.is_leader, partition.replicas, partition.high_watermark) == (False, None, 0)
