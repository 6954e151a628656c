"""Whose the log directories are, and which partitions live in them."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from moldau.core.errors import ErrorCode
from moldau.core.ids import Offset, TopicId, TopicPartition
from moldau.log.directories.lock import DirectoryLock
from moldau.log.directories.log_directories import LogDirectories
from moldau.log.directories.meta_properties import NoPlace, UnusableDirectory
from moldau.log.errors import LogError
from moldau.log.failure import SyncFailed
from tests.log.samples import NOW_MS, append, contents, crash, log_in

ORDERS = TopicPartition("orders", 0)


def test_a_folder_is_made_and_marked_as_ours(tmp_path: Path) -> None:
    directories = LogDirectories.open([tmp_path / "a"], node_id=3)
    lines = (tmp_path / "a" / "meta.properties").read_text().splitlines()
    assert [line.split("=")[0] for line in lines] == ["node.id", "directory.id", "version", "cluster.id"]
    assert lines[0] == "node.id=3"
    assert lines[2:] == ["version=1", f"cluster.id={directories.cluster_id}"]
    directories.close()
    assert LogDirectories.open([tmp_path / "a"], node_id=3).cluster_id == directories.cluster_id


def test_a_folder_of_another_node_or_cluster_is_refused(tmp_path: Path) -> None:
    LogDirectories.open([tmp_path], node_id=3, cluster_id="one").close()
    with pytest.raises(UnusableDirectory, match=r"belongs to node 3; this is node 4"):
        LogDirectories.open([tmp_path], node_id=4)
    with pytest.raises(UnusableDirectory, match=r"belongs to cluster one; this is cluster two"):
        LogDirectories.open([tmp_path], node_id=3, cluster_id="two")
    LogDirectories.open([tmp_path], node_id=3).close()


def test_kafkas_own_meta_properties_are_understood(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(
        "#\n#Sun Nov 15 10:30:57 UTC 2026\nnode.id=1\ndirectory.id=VU-In7rRxwBBNI_kGG0Y2A\nversion=1\ncluster.id=T6NB\n"
    )
    directories = LogDirectories.open([tmp_path], node_id=1)
    assert (directories.cluster_id, directories.directory_id(tmp_path)) == ("T6NB", "VU-In7rRxwBBNI_kGG0Y2A")


def test_a_folder_in_use_is_refused_by_the_name_of_who_uses_it(tmp_path: Path) -> None:
    held = LogDirectories.open([tmp_path], node_id=1)
    with pytest.raises(UnusableDirectory, match=f"{tmp_path} is in use: process {os.getpid()}"):
        LogDirectories.open([tmp_path], node_id=1)
    held.close()
    LogDirectories.open([tmp_path], node_id=1).close()


def test_another_process_holds_a_folder_until_it_ends(tmp_path: Path) -> None:
    program = (
        "import sys; from moldau.log.directories.log_directories import LogDirectories; "
        "LogDirectories.open([sys.argv[1]], node_id=1); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(UnusableDirectory, match=f"process {holder.pid}"):
            LogDirectories.open([tmp_path], node_id=1)
        holder.kill()
        holder.wait()
    LogDirectories.open([tmp_path], node_id=1).close()


def test_a_path_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UnusableDirectory, match=r"/file is not a directory"):
        LogDirectories.open([tmp_path / "file"], node_id=1)


def test_new_partitions_go_where_the_fewest_are(tmp_path: Path) -> None:
    directories = LogDirectories.open([tmp_path / "a", tmp_path / "b"], node_id=1)
    for index in range(5):
        log_in(directories, TopicPartition("orders", index))
    assert [len(list((tmp_path / name).glob("orders-*"))) for name in "ab"] == [3, 2]
    directories.close()
    directories = LogDirectories.open([tmp_path / "a", tmp_path / "b"], node_id=1)
    assert log_in(directories, TopicPartition("orders", 1)).directory == tmp_path / "b" / "orders-1"
    assert log_in(directories, TopicPartition("more", 0)).directory == tmp_path / "b" / "more-0"


def test_a_clean_stop_leaves_checkpoints_and_the_next_start_takes_them(tmp_path: Path) -> None:
    directories = LogDirectories.open([tmp_path], node_id=1)
    log = log_in(directories)
    append(log, b"a", b"b")
    append(log, b"c")
    log.advance_log_start(log.end_offset, now_ms=NOW_MS)
    append(log, b"d")
    directories.high_watermark_of = {ORDERS: 3}.get
    directories.close(broker_epoch=9)
    assert (tmp_path / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":9}'
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\norders 0 4\n"
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\norders 0 3\n"
    assert (tmp_path / "replication-offset-checkpoint").read_text() == "0\n1\norders 0 3\n"
    directories = LogDirectories.open([tmp_path], node_id=1)
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    log = log_in(directories)
    assert directories.high_watermark(log) == 3
    assert (log.log_start_offset, contents(log), log.recovery_point) == (3, [(3, b"d")], 4)


def test_after_a_crash_the_recovery_point_is_that_of_the_last_checkpoint(tmp_path: Path) -> None:
    directories = LogDirectories.open([tmp_path], node_id=1)
    log = log_in(directories)
    append(log, b"a")
    log.flush()
    directories.checkpoints().write()
    append(log, b"b")
    crash(directories)
    again = log_in(LogDirectories.open([tmp_path], node_id=1))
    assert (again.recovery_point, contents(again)) == (1, [(0, b"a"), (1, b"b")])


def test_a_deleted_partition_frees_its_name_at_once_and_its_disk_soon(tmp_path: Path) -> None:
    directories = LogDirectories.open([tmp_path], node_id=1)
    old = log_in(directories)
    append(old, b"old")
    reader = old.read(old.log_start_offset, bytes_max=1000, end=old.end_offset, one_batch=True)
    directories.delete(old)
    assert contents(log_in(directories, topic_id=TopicId(b"another topic id"))) == []
    assert [path.name[:9] for path in tmp_path.glob("*-delete")] == ["orders-0."]
    removal = directories.removals_due(NOW_MS)
    assert removal is not None
    removal()
    assert list(tmp_path.glob("*-delete")) == []
    assert len(reader.read()) == len(reader)
    assert directories.removals_due(NOW_MS) is None


def test_a_folder_that_was_to_be_deleted_is_at_the_next_start(tmp_path: Path) -> None:
    (tmp_path / "orders-0.0123456789abcdef0123456789abcdef-delete").mkdir()
    removal = LogDirectories.open([tmp_path], node_id=1).removals_due(NOW_MS)
    assert removal is not None
    removal()
    assert list(tmp_path.glob("*-delete")) == []


def test_strange_folders_are_left_and_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("lost+found", "gone-0"):
        (tmp_path / name).mkdir()
    with caplog.at_level(logging.WARNING):
        directories = LogDirectories.open([tmp_path], node_id=1)
        assert directories.unclaimed() == {TopicPartition("gone", 0): f"{tmp_path}/gone-0"}
    assert "lost+found" in caplog.text
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"lost+found", "gone-0"}


def test_a_folder_of_an_older_topic_of_the_same_name_is_kept_aside(tmp_path: Path) -> None:
    directories = LogDirectories.open([tmp_path], node_id=1)
    append(log_in(directories), b"old")
    directories.close()
    directories = LogDirectories.open([tmp_path], node_id=1)
    assert contents(log_in(directories, topic_id=TopicId(b"another topic id"))) == []
    assert [path.name[:9] for path in tmp_path.glob("*-stray")] == ["orders-0."]


def test_a_folder_that_cannot_be_written_to_gets_no_new_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directories = LogDirectories.open([tmp_path / "a", tmp_path / "b"], node_id=1)
    log = log_in(directories)
    append(log, b"a")

    def full(fd: int, data: bytes, position: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, "pwrite", full)
        with pytest.raises(LogError) as refused:
            append(log, b"b")
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert directories.full == {tmp_path / "a": "No space left on device"}
    assert directories.failures == {}
    assert {log_in(directories, TopicPartition("more", index)).directory.parent for index in range(3)} == {
        tmp_path / "b"
    }
    append(log, b"c")
    assert contents(log) == [(0, b"a"), (1, b"c")]


def test_a_disk_that_has_room_again_gets_new_partitions(tmp_path: Path) -> None:
    directories = LogDirectories.open([tmp_path], node_id=1)
    directories.fail(tmp_path, OSError(errno.ENOSPC, "No space left on device"))
    assert directories.full == {tmp_path: "No space left on device"}
    assert log_in(directories).directory.parent == tmp_path
    assert directories.full == {}


def test_a_directory_that_can_be_written_to_again_is_no_longer_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directories = LogDirectories.open([tmp_path], node_id=1)
    no_room = OSError(errno.ENOSPC, "No space left on device")
    directories.fail(tmp_path, no_room)

    def full(fd: int, data: bytes, position: int) -> int:
        raise no_room

    with monkeypatch.context() as disk:
        disk.setattr(os, "pwrite", full)
        directories.look_for_room()
    assert directories.full == {tmp_path: "No space left on device"}
    directories.look_for_room()
    assert directories.full == {}
    assert not list(tmp_path.glob("*room*"))


@pytest.mark.parametrize("failure", [OSError(errno.EIO, "I/O error"), SyncFailed(errno.ENOSPC, "No space left")])
def test_a_directory_that_failed_takes_its_partitions_offline(tmp_path: Path, failure: OSError) -> None:
    directories = LogDirectories.open([tmp_path / "a", tmp_path / "b"], node_id=1)
    log, neighbour = log_in(directories), log_in(directories, TopicPartition("more", 0))
    append(log, b"a")
    told: list[tuple[str, list[TopicPartition]]] = []
    directories.on_offline = lambda path, gone: told.append((path, gone))
    assert log.on_failure is not None
    log.on_failure(failure)
    log.on_failure(failure)
    assert told == [(str(tmp_path / "a"), [log.partition])]
    for use in (
        lambda: append(log, b"b"),
        lambda: log.read(Offset(0), bytes_max=100, end=Offset(1), one_batch=True),
        lambda: log.roll(NOW_MS),
        log.flush,
        log.rest,
        log.max_timestamp,
        lambda: log.truncate_to(Offset(0), now_ms=NOW_MS),
        lambda: log.advance_log_start(Offset(1), now_ms=NOW_MS),
        lambda: log.delete_old_segments(NOW_MS, Offset(1)),
        lambda: log.aborted_transactions(Offset(0), Offset(1)),
    ):
        with pytest.raises(LogError) as refused:
            use()
        assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    append(neighbour, b"a")
    directories.look_for_room()
    assert directories.failures == {tmp_path / "a": failure.strerror}
    homes = {log_in(directories, TopicPartition("new", index)).directory.parent for index in range(3)}
    assert homes == {tmp_path / "b"}
    directories.close()
    assert not (tmp_path / "a" / ".kafka_cleanshutdown").exists()
    assert (tmp_path / "b" / ".kafka_cleanshutdown").exists()
    again = LogDirectories.open([tmp_path / "a", tmp_path / "b"], node_id=1)
    assert contents(log_in(again)) == [(0, b"a")]
    again.close()


def test_a_partition_that_could_not_be_made_leaves_nothing_in_its_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directories = LogDirectories.open([tmp_path], node_id=1)

    def full(fd: int, data: bytes, position: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, "pwrite", full)
        with pytest.raises(NoPlace, match="orders-0"):
            log_in(directories)
    assert not (tmp_path / "orders-0").exists()
    append(log_in(directories), b"a")


def test_a_stop_without_room_says_which_folder_will_be_recovered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    directories = LogDirectories.open([tmp_path / "a", tmp_path / "b"], node_id=1)
    append(log_in(directories), b"kept")
    replace = os.replace

    def full(source: str, target: str) -> None:
        if target.startswith(str(tmp_path / "a")):
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(source, target)

    with monkeypatch.context() as disk:
        disk.setattr(os, "replace", full)
        directories.close()
    assert [line for line in caplog.messages if "No space" in line and str(tmp_path / "a") in line]
    assert not (tmp_path / "a" / ".kafka_cleanshutdown").exists()
    assert (tmp_path / "b" / ".kafka_cleanshutdown").exists()
    again = LogDirectories.open([tmp_path / "a", tmp_path / "b"], node_id=1)
    assert contents(log_in(again)) == [(0, b"kept")]


def test_a_partition_in_two_folders_is_refused(tmp_path: Path) -> None:
    """As when a broker ran without one of its folders for a while: serving either copy would hide the other."""
    directories = LogDirectories.open([tmp_path / "a"], node_id=1)
    log_in(directories)
    directories.close()
    shutil.copytree(tmp_path / "a" / "orders-0", tmp_path / "b" / "orders-0")
    with pytest.raises(UnusableDirectory, match=r"orders-0 is in .*/a and in .*/b; move one"):
        LogDirectories.open([tmp_path / "a", tmp_path / "b"], node_id=1)


@pytest.mark.parametrize("name", ["partition.metadata", "strange.log", "strange.snapshot"])
def test_a_partition_that_cannot_be_opened_is_named(tmp_path: Path, name: str) -> None:
    directories = LogDirectories.open([tmp_path], node_id=1)
    log_in(directories)
    directories.close()
    (tmp_path / "orders-0" / name).write_text("garbage")
    directories = LogDirectories.open([tmp_path], node_id=1)
    with pytest.raises(UnusableDirectory, match="orders-0"):
        log_in(directories)
    directories.close()


def test_a_topic_made_anew_while_its_old_directory_was_offline(tmp_path: Path) -> None:
    """The old folder could not be renamed, so the next start finds both, and takes the one with the topic's id."""
    folders = [tmp_path / "a", tmp_path / "b"]
    directories = LogDirectories.open(folders, node_id=1)
    old = log_in(directories)
    append(old, b"old")
    directories.fail(tmp_path / "a", OSError(errno.EIO, "I/O error"))
    directories.delete(old)
    other_id = TopicId(bytes(16)[:-1] + b"\x01")
    append(log_in(directories, topic_id=other_id), b"new")
    directories.close()
    again = LogDirectories.open(folders, node_id=1)
    assert contents(log_in(again, topic_id=other_id)) == [(0, b"new")]
    assert [path.name.endswith("-stray") for path in (tmp_path / "a").glob("orders-0*")] == [True]
    again.close()


def test_a_start_that_failed_is_no_clean_stop(tmp_path: Path) -> None:
    """A log that could not be recovered was taken for recovered by the next start, which served its torn tail."""
    directories = LogDirectories.open([tmp_path], node_id=1)
    append(log_in(directories), b"a")
    crash(directories)
    given_up = LogDirectories.open([tmp_path], node_id=1)
    given_up.end()
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    clean = LogDirectories.open([tmp_path], node_id=1)
    log_in(clean)
    clean.is_started = True
    clean.end()
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    points = (tmp_path / "recovery-point-offset-checkpoint").read_text()
    LogDirectories.open([tmp_path], node_id=1).end()
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == points


def test_a_lock_needs_no_room_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    monkeypatch.setattr(os, "ftruncate", full)
    for _ in range(2):
        lock = DirectoryLock(str(tmp_path))
        with pytest.raises(UnusableDirectory, match="is in use"):
            DirectoryLock(str(tmp_path))
        lock.release()


def test_a_lack_of_descriptors_is_one_line_however_many_are_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directories = LogDirectories.open([tmp_path], node_id=1)
    for _ in range(100):
        directories.fail(tmp_path, OSError(errno.EMFILE, "Too many open files"))
    assert [line for line in caplog.messages if "Too many open files" in line] == [
        f"log directory {tmp_path}: [Errno {errno.EMFILE}] Too many open files"
    ]
    assert directories.failures == {}
    directories.close()


@pytest.mark.parametrize("is_noted_before", [False, True], ids=["checkpoint then truncation", "noted, then truncated"])
def test_a_log_that_was_truncated_before_its_start_is_not_emptied_after_a_crash(
    tmp_path: Path, *, is_noted_before: bool
) -> None:
    """As a follower is whose leader was elected uncleanly: the checkpoint has a start that the log ends before."""
    directories = LogDirectories.open([tmp_path], node_id=1)
    log = log_in(directories, ORDERS)
    for number in range(5):
        append(log, b"%d" % number)
    log.advance_log_start(Offset(4), now_ms=NOW_MS)
    noted = directories.checkpoints()
    if not is_noted_before:
        noted.write()
    log.truncate_to(Offset(2), now_ms=NOW_MS)
    if is_noted_before:
        noted.write()
    append(log, b"new")
    crash(directories)
    again = log_in(LogDirectories.open([tmp_path], node_id=1), ORDERS)
    assert (again.log_start_offset, again.end_offset) == (2, 3)
    assert contents(again) == contents(log)
