"""Files as a crash or a bad disk leaves them: what is found at the start, what is cut, and what must survive."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import moldau
from tests.differential.batches import HEADER
from tests.faults.clients import create_topic, end_offset, read_partition, write

TOPIC = "t"
VALUES = [b"value %d " % number + b"x" * 500 for number in range(60)]
BEFORE = {"log.flush.offset.checkpoint.interval.ms": 60_000}  # no checkpoint before the crash: all is to be checked

Damage = Callable[[Path], None]


def log_of(folder: Path) -> Path:
    return sorted(folder.glob("*.log"))[-1]


def batch_positions(log: Path) -> list[int]:
    data, at, positions = log.read_bytes(), 0, []
    while at < len(data):
        positions.append(at)
        at += 12 + HEADER.unpack_from(data, at)[1]
    return positions


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)


def torn_tail(folder: Path) -> None:
    log = log_of(folder)
    log.write_bytes(log.read_bytes()[:-5])


def half_a_header(folder: Path) -> None:
    log = log_of(folder)
    log.write_bytes(log.read_bytes()[: batch_positions(log)[-1] + 20])


def zeros_behind(folder: Path) -> None:
    """What some file systems leave after a power failure: the length is there, the bytes are not."""
    log = log_of(folder)
    log.write_bytes(log.read_bytes() + bytes(4_096))


def noise_behind(folder: Path) -> None:
    log = log_of(folder)
    log.write_bytes(log.read_bytes() + b"\xa5" * 333)


def flipped_bit_in_the_last_batch(folder: Path) -> None:
    log = log_of(folder)
    flip(log, batch_positions(log)[-1] + 100)


def flipped_bit_in_the_fortieth_batch(folder: Path) -> None:
    log = log_of(folder)
    flip(log, batch_positions(log)[40] + 100)


def indexes_gone(folder: Path) -> None:
    for path in (*folder.glob("*.index"), *folder.glob("*.timeindex")):
        path.unlink()


def indexes_of_noise(folder: Path) -> None:
    for path in (*folder.glob("*.index"), *folder.glob("*.timeindex")):
        path.write_bytes(b"\xff\x01\x80" * 31)


def snapshots_gone(folder: Path) -> None:
    for path in folder.glob("*.snapshot"):
        path.unlink()


def epochs_gone(folder: Path) -> None:
    (folder / "leader-epoch-checkpoint").unlink(missing_ok=True)


def checkpoints_gone(folder: Path) -> None:
    for path in folder.parent.glob("*-checkpoint"):
        path.unlink()


def checkpoints_of_noise(folder: Path) -> None:
    for path in folder.parent.glob("*-checkpoint"):
        path.write_bytes(b"0\nnonsense\n\xff\n")


def recovery_point_beyond_the_end(folder: Path) -> None:
    (folder.parent / "recovery-point-offset-checkpoint").write_text(f"0\n1\n{TOPIC} 0 99999\n")


CASES: dict[Damage, int] = {  # how many of the records survive
    torn_tail: 59,
    half_a_header: 59,
    zeros_behind: 60,
    noise_behind: 60,
    flipped_bit_in_the_last_batch: 59,
    flipped_bit_in_the_fortieth_batch: 40,
    indexes_gone: 60,
    indexes_of_noise: 60,
    snapshots_gone: 60,
    epochs_gone: 60,
    checkpoints_gone: 60,
    checkpoints_of_noise: 60,
    recovery_point_beyond_the_end: 60,
}
HARMLESS_AFTER_A_CLEAN_STOP = (
    indexes_gone, indexes_of_noise, snapshots_gone, epochs_gone, checkpoints_gone, checkpoints_of_noise,
)  # fmt: skip


def filled(data_dir: Path, *, how: str, damage: Damage) -> None:
    broker = moldau.run(data_dir=data_dir, overrides=BEFORE)
    try:
        create_topic(broker.bootstrap_servers, TOPIC, config={"index.interval.bytes": "1000"})
        write(broker.bootstrap_servers, TOPIC, VALUES)
    finally:
        broker.kill() if how == "kill" else broker.stop()
    damage(data_dir / f"{TOPIC}-0")


def assert_serves(data_dir: Path, *, survivors: int) -> None:
    """What survived is read back, reading from the middle works, and writing goes on where the log now ends."""
    with moldau.run(data_dir=data_dir) as broker:
        bootstrap = broker.bootstrap_servers
        assert end_offset(bootstrap, TOPIC) == survivors
        assert [one.value for one in read_partition(bootstrap, TOPIC)] == VALUES[:survivors]
        write(bootstrap, TOPIC, [b"one more"], **{"enable.idempotence": True})
        read = read_partition(bootstrap, TOPIC)
        assert [one.offset for one in read] == list(range(survivors + 1))
        assert read[-1].value == b"one more"
        assert not re.search("Traceback", broker.output())


@pytest.mark.parametrize("damage", CASES, ids=lambda damage: damage.__name__)
def test_after_a_crash(tmp_path: Path, damage: Damage) -> None:
    filled(tmp_path, how="kill", damage=damage)
    assert_serves(tmp_path, survivors=CASES[damage])
    assert_serves_again(tmp_path, survivors=CASES[damage] + 1)


@pytest.mark.parametrize("damage", HARMLESS_AFTER_A_CLEAN_STOP, ids=lambda damage: damage.__name__)
def test_after_a_clean_stop(tmp_path: Path, damage: Damage) -> None:
    filled(tmp_path, how="stop", damage=damage)
    assert_serves(tmp_path, survivors=len(VALUES))


def assert_serves_again(data_dir: Path, *, survivors: int) -> None:
    """Mended is mended: the next start finds nothing to do and the same records."""
    with moldau.run(data_dir=data_dir) as broker:
        assert end_offset(broker.bootstrap_servers, TOPIC) == survivors


def test_what_was_cut_is_said(tmp_path: Path) -> None:
    filled(tmp_path, how="kill", damage=flipped_bit_in_the_fortieth_batch)
    with moldau.run(data_dir=tmp_path) as broker:
        said = [line for line in broker.output().splitlines() if "WARNING" in line and f"{TOPIC}-0" in line]
        assert said, broker.output()


def test_a_retried_batch_is_known_after_a_crash(tmp_path: Path) -> None:
    """Sequences come back from the log itself when no snapshot was written in time."""
    filled(tmp_path, how="kill", damage=snapshots_gone)
    with moldau.run(data_dir=tmp_path) as broker:
        write(broker.bootstrap_servers, TOPIC, [b"after"], **{"enable.idempotence": True})
        assert end_offset(broker.bootstrap_servers, TOPIC) == len(VALUES) + 1
