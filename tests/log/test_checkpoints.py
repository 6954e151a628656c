"""The text files beside the logs, byte for byte as Kafka writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.core.ids import TopicPartition, parse_uuid
from moldau.log.checkpoints import (
    RECOVERY_POINTS,
    CorruptCheckpoint,
    read_clean_shutdown,
    read_leader_epochs,
    read_offsets,
    read_partition_metadata,
    write_clean_shutdown,
    write_leader_epochs,
    write_offsets,
    write_partition_metadata,
)
from moldau.log.leader_epochs import EpochStart, LeaderEpochs

TOPIC_ID = parse_uuid("aIsrYXEuS4Ww8w6xaTtm9A")


def test_offsets(tmp_path: Path) -> None:
    offsets = {TopicPartition("a.b-c", 0): 7, TopicPartition("orders", 12): 2**40}
    write_offsets(str(tmp_path), RECOVERY_POINTS, offsets)
    assert (tmp_path / RECOVERY_POINTS).read_bytes() == b"0\n2\na.b-c 0 7\norders 12 1099511627776\n"
    assert read_offsets(str(tmp_path), RECOVERY_POINTS) == offsets


def test_no_file_and_an_empty_one_have_no_offsets(tmp_path: Path) -> None:
    assert read_offsets(str(tmp_path), RECOVERY_POINTS) == {}
    (tmp_path / RECOVERY_POINTS).touch()
    assert read_offsets(str(tmp_path), RECOVERY_POINTS) == {}


@pytest.mark.parametrize("text", ["1\n0\n", "0\n2\norders 0 1\n", "0\n1\norders 0\n", "0\n1\norders 0 x\n", "\xff\n"])
def test_what_is_malformed_is_refused_with_the_files_name(tmp_path: Path, text: str) -> None:
    (tmp_path / RECOVERY_POINTS).write_text(text)
    with pytest.raises(CorruptCheckpoint, match=RECOVERY_POINTS):
        read_offsets(str(tmp_path), RECOVERY_POINTS)


@pytest.mark.parametrize("starts", [[], [EpochStart(0, 0)], [EpochStart(0, 0), EpochStart(3, 25)]])
def test_leader_epochs(tmp_path: Path, starts: list[EpochStart]) -> None:
    write_leader_epochs(str(tmp_path), LeaderEpochs([EpochStart(0, 0), EpochStart(1, 5), EpochStart(2, 6)]))
    write_leader_epochs(str(tmp_path), LeaderEpochs(starts))
    lines = ["0", str(len(starts)), *(f"{epoch} {offset}" for epoch, offset in starts)]
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "".join(f"{line}\n" for line in lines)
    assert read_leader_epochs(str(tmp_path)).entries == starts


def test_partition_metadata(tmp_path: Path) -> None:
    assert read_partition_metadata(str(tmp_path)) is None
    write_partition_metadata(str(tmp_path), TOPIC_ID)
    assert (tmp_path / "partition.metadata").read_bytes() == b"version: 0\ntopic_id: aIsrYXEuS4Ww8w6xaTtm9A"
    assert read_partition_metadata(str(tmp_path)) == TOPIC_ID


def test_partition_metadata_that_a_power_failure_left_as_zeros_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "partition.metadata").write_bytes(bytes(43))
    assert read_partition_metadata(str(tmp_path)) is None


def test_clean_shutdown(tmp_path: Path) -> None:
    assert not read_clean_shutdown(str(tmp_path))
    write_clean_shutdown(str(tmp_path), 12)
    assert (tmp_path / ".kafka_cleanshutdown").read_bytes() == b'{"version":0,"brokerEpoch":12}'
    assert read_clean_shutdown(str(tmp_path))


@pytest.mark.parametrize("text", ["damaged", "version: 0", "version: x\ntopic_id: y", "version: 0\ntopic_id: nonsense"])
def test_malformed_partition_metadata_says_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / "partition.metadata").write_text(text)
    with pytest.raises(CorruptCheckpoint, match=r"partition\.metadata: malformed.*; remove the file"):
        read_partition_metadata(str(tmp_path))
