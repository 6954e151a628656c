"""Damaged files: one line says which and where, and the exit code is 1."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from moldau.cli.kafka.dump_log.command import main
from moldau.wire.crc import crc32c
from tests.cli.conftest import Tool

NAME = "00000000000000000100"
MARKER_BYTES = 78
SMALL = "smaller than minimum record overhead (14)"


def told(capsys: pytest.CaptureFixture[str], path: Path, *options: str) -> list[str]:
    assert main(["--files", str(path), *options]) == 1
    return capsys.readouterr().err.replace(f"{path.parent}/", "").splitlines()


def changed(at: int, new: bytes) -> Callable[[bytes], bytes]:
    return lambda data: data[:at] + new + data[at + len(new) :]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda data: data[:-1], "byte {marker}: the last 77 bytes are no whole batch"),
        (lambda data: data + b"12345", "byte {end}: the last 5 bytes are no whole batch"),
        (changed(90, b"\xff"), "byte 0: the checksum of the batch is wrong"),
        (changed(8, b"\0\0\0\3"), f"byte 0: found record size 3 {SMALL}"),
        (changed(8, b"\xff\0\0\3"), f"byte 0: found record size -16777213 {SMALL}"),
        (changed(8, b"\0\0\0\x20"), "byte 0: a batch of 44 bytes; its header alone has 61"),
        (changed(16, b"\1"), "byte 0: message format version 1, which only Kafka before 0.11 wrote"),
    ],
)
def test_a_log(capsys: pytest.CaptureFixture[str], log: Path, damage: Callable[[bytes], bytes], said: str) -> None:
    end = log.stat().st_size
    log.write_bytes(damage(log.read_bytes()))
    said = said.format(marker=end - MARKER_BYTES, end=end)
    assert told(capsys, log) == [f"moldau dump-log: {NAME}.log: {said}"]


def test_records_that_are_none_are_told_by_batch_and_the_rest_is_read(
    capsys: pytest.CaptureFixture[str], log: Path
) -> None:
    log.write_bytes(changed(61, b"\x7f")(log.read_bytes()))
    assert main(["--files", str(log), "--deep-iteration"]) == 1
    printed = capsys.readouterr()
    assert "| offset: 102 " in printed.out
    assert printed.err.replace(f"{log.parent}/", "").splitlines()[-2:] == [
        f"moldau dump-log: {NAME}.log: byte 0: the checksum of the batch is wrong",
        f"moldau dump-log: {NAME}.log: byte 0: Invalid record size: expected to read -64 bytes in record payload,"
        " but instead read 18",
    ]


def test_an_offset_index_beside_its_log(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    index = log.with_suffix(".index")
    index.write_bytes(struct.pack(">4i", 1, 0, 2, 96))
    assert told(capsys, index) == [f"Mismatches in :{NAME}.index", "  Index offset: 102, log offset: 103"]
    index.write_bytes(struct.pack(">2i", 1, 5_000))
    assert told(capsys, index) == [
        f"moldau dump-log: {NAME}.log: an entry of its index leads to byte 5000; the log has {log.stat().st_size}"
    ]
    index.write_bytes(struct.pack(">2i", -1, 0) + b"xyz")
    assert told(capsys, index, "--index-sanity-check") == [
        f"moldau dump-log: Corrupt index found, index file {NAME}.index has non-zero size but the last offset is 99"
        " which is less than the base offset 100"
    ]
    log.unlink()
    assert told(capsys, index) == [
        f"moldau dump-log: {NAME}.index: {NAME}.log is not there; entries are looked up in it"
    ]


def test_a_time_index_beside_its_log(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    index = log.with_suffix(".timeindex")
    index.write_bytes(struct.pack(">qiqiqiqi", 1_001, 1, 1_005, 3, 1_000, 7, 3_000, 6))
    assert told(capsys, index) == [
        f"Found timestamp mismatch in :{NAME}.timeindex",
        "  Index timestamp: 1005, log timestamp: 1001",
        f"Found out of order timestamp in :{NAME}.timeindex",
        "  Index timestamp: 1000, Previously indexed timestamp: 1005",
        f"The following indexed offsets are not found in :{NAME}.timeindex",
        "Indexed offset: 106, found log offset: 107",
    ]
    index.write_bytes(struct.pack(">qiqi", 1_001, 1, 1_000, 3))
    assert told(capsys, index, "--index-sanity-check") == [
        f"moldau dump-log: Corrupt time index found, time index file ({NAME}.timeindex) has non-zero size"
        " but the last timestamp is 1000 which is less than the first timestamp 1001"
    ]


def test_zeros_of_a_new_index_are_no_damage(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    index, times = log.with_suffix(".index"), log.with_suffix(".timeindex")
    index.write_bytes(bytes(800))
    times.write_bytes(bytes(1_200))
    assert main(["--files", f"{index},{times}"]) == 0
    printed = capsys.readouterr()
    assert printed.out.count("offset: 100 ") + printed.out.count("offset: 100\n") == 2
    assert "Index offset: 100, log offset: 101" in printed.err, "as Apache Kafka's tool tells them"


SNAPSHOT = struct.pack(">i", 1) + struct.pack(">qhiqiqiq", 9, 1, 4, 101, 1, 1_001, 7, 100)


def test_producers(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.snapshot"
    path.write_bytes(struct.pack(">hI", 1, crc32c(SNAPSHOT)) + SNAPSHOT)
    assert main(["--files", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[1] == (
        "producerId: 9 producerEpoch: 1 coordinatorEpoch: 7 currentTxnFirstOffset: OptionalLong[100]"
        " lastTimestamp: 1001 firstSequence: 3 lastSequence: 4 lastOffset: 101 offsetDelta: 1 timestamp: 1001"
    )
    path.write_bytes(struct.pack(">hI", 1, 5) + SNAPSHOT)
    assert told(capsys, path) == [
        f"moldau dump-log: Snapshot is corrupt (CRC is no longer valid). Stored crc: 5."
        f" Computed crc: {crc32c(SNAPSHOT)}: {path.name}"
    ]
    path.write_bytes(struct.pack(">hI", 1, 5) + b"\x7f\0\0\0")
    assert told(capsys, path)[0].startswith("moldau dump-log: Snapshot failed schema validation: 2130706432 producers")


def test_aborted_transactions(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.txnindex"
    path.write_bytes(struct.pack(">hqqqq", 0, 9, 100, 108, 109) + b"12")
    assert told(capsys, path) == [f"moldau dump-log: {path.name}: the last 2 bytes are no whole entry of 34"]


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        ((), 2, "the following arguments are required: --files; see: moldau dump-log --help"),
        (("--files", "a.log", "--print-data"), 0, None),
        (("--files", "a.log", "--max-bytes", "x"), 2, "'x' is no number of bytes"),
        (
            ("--files", "a.log", "--offset-decoder"),
            2,
            "unknown option --offset-decoder; did you mean --offsets-decoder?",
        ),
        (("--files", "a.log", "--key-decoder-class", "my.Decoder"), 2, "unknown decoder 'my.Decoder'"),
        (("--files", "a.log", "--key-decoder-class", "no_module:f"), 2, "No module named 'no_module'"),
        (("--files", "/nowhere/00000000000000000000.log"), 1, "cannot read /nowhere/00000000000000000000.log"),
        (("--files", "/etc/hosts.log"), 1, "/etc/hosts.log: the name is no offset"),
    ],
)
def test_bad_use(tool: Tool, arguments: tuple[str, ...], exit_code: int, said: str | None) -> None:
    done = tool("dump-log", *arguments)
    if said is None:  # a beginning that is no option's whole name is refused like any other
        assert done.returncode in (1, 2)
        return
    assert (done.returncode, len(done.stderr.splitlines())) == (exit_code, 1)
    assert said in done.stderr
