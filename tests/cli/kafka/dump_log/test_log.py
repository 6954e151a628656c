"""Logs as `moldau dump-log` prints them; tests/suites compares the lines with Apache Kafka's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from moldau.cli.kafka.dump_log.command import main
from tests.cli.kafka.dump_log.conftest import marker, plain

NAME = "00000000000000000100.log"


@pytest.fixture
def dumped(capsys: pytest.CaptureFixture[str]) -> Dumped:
    return Dumped(capsys)


class Dumped:
    """The lines of one run, without the checksums."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.exit_code = 0
        self.complaints: list[str] = []

    def __call__(self, path: Path, *options: str) -> list[str]:
        self.exit_code = main(["--files", str(path), *options])
        printed = self._capsys.readouterr()
        self.complaints = printed.err.replace(f"{path.parent}/", "").splitlines()
        return re.sub(r"crc: \d+", "crc: N", printed.out.replace(f"{path.parent}/", "")).splitlines()


FIRST = (
    "baseOffset: 100 lastOffset: 101 count: 2 baseSequence: 2147483647 lastSequence: 0 producerId: 9 producerEpoch: 1"
    " partitionLeaderEpoch: -1 isTransactional: true isControl: false deleteHorizonMs: OptionalLong.empty position: 0"
    " CreateTime: 1001 size: 96 magic: 2 compresscodec: none crc: N isvalid: true"
)
MARKER = (
    "baseOffset: 108 lastOffset: 108 count: 1 baseSequence: -1 lastSequence: -1 producerId: 9 producerEpoch: 1"
    " partitionLeaderEpoch: -1 isTransactional: true isControl: true deleteHorizonMs: OptionalLong.empty"
)


def test_batches(dumped: Dumped, log: Path) -> None:
    lines = dumped(log)
    assert lines[:3] == [f"Dumping {NAME}", "Log starting offset: 100", FIRST]
    assert [re.findall(r"(?:baseOffset|compresscodec): (\S+)", line) for line in lines[2:]] == [
        ["100", "none"],
        ["102", "gzip"],
        ["107", "none"],
        ["108", "none"],
    ]
    assert lines[-1].startswith(MARKER)
    assert " LogAppendTime: 3000 " in lines[-1]
    assert (dumped.exit_code, dumped.complaints) == (0, [])


def test_records(dumped: Dumped, log: Path) -> None:
    lines = [line for line in dumped(log, "--print-data-log") if line.startswith("|")]
    assert lines[:2] == [
        "| offset: 100 CreateTime: 1000 keySize: 2 valueSize: 3 sequence: 2147483647 headerKeys: [h,i]"
        " key: k0 payload: vä",
        "| offset: 101 CreateTime: 1001 keySize: 2 valueSize: -1 sequence: 0 headerKeys: [h,i] key: k1",
    ]
    assert lines[-1] == (
        "| offset: 108 LogAppendTime: 3000 keySize: 4 valueSize: 6 sequence: -1 headerKeys: []"
        " endTxnMarker: ABORT coordinatorEpoch: 4"
    )
    assert dumped.complaints == [f"Non-consecutive offsets in {NAME}", "  103 is followed by 107"]
    assert dumped.exit_code == 0, "a gap is no damage"


def test_records_without_what_stands_around_them(dumped: Dumped, log: Path) -> None:
    lines = dumped(log, "--print-data-log", "--skip-record-metadata")
    assert [line for line in lines if not line.startswith("base")] == [
        f"Dumping {NAME}",
        "Log starting offset: 100",
        *["| key: k0 payload: vä", "| key: k1"] * 2,
        "| key: k0 payload: vä",
        "",
    ]


def test_no_more_than_so_many_bytes(dumped: Dumped, log: Path) -> None:
    assert [line[:15] for line in dumped(log, "--max-bytes", "100")[2:]] == ["baseOffset: 100"]
    assert dumped.exit_code == 0


@pytest.mark.parametrize(
    ("decoder", "shown"),
    [
        ("org.apache.kafka.tools.api.StringDecoder", "vä"),
        ("kafka.serializer.DefaultDecoder", "76c3a4"),
        ("builtins:len", "3"),
    ],
)
def test_decoders(dumped: Dumped, log: Path, decoder: str, shown: str) -> None:
    assert dumped(log, "--value-decoder-class", decoder)[3].endswith(f"key: k0 payload: {shown}")


def test_a_decoder_that_does_not_fit_is_damage_and_no_end(dumped: Dumped, log: Path) -> None:
    place = log.stat().st_size - len(plain(107, 1)) - len(marker(108, kind=0, epoch=4))
    lines = dumped(log, "--key-decoder-class", "org.apache.kafka.tools.api.LongDecoder")
    assert len([line for line in lines if line.startswith("base")]) == 4
    assert dumped.complaints[-1] == (
        f"moldau dump-log: {NAME}: byte {place}: the decoder fails at offset 107: 2 bytes are no number of 8"
    )
    assert dumped.exit_code == 1
