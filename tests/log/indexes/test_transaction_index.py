"""Aborted transactions, segment by segment."""

from __future__ import annotations

from pathlib import Path

from moldau.log.indexes.transaction_index import (
    AbortedTransaction,
    aborted_between,
    append_aborted,
    is_damaged,
    read_aborted,
    truncate_aborted,
)

FIRST = AbortedTransaction(7, 10, 20, 15)
SECOND = AbortedTransaction(8, 15, 30, 31)
THIRD = AbortedTransaction(7, 40, 50, 51)


def paths(folder: Path) -> list[str]:
    """Two segments, the first with two aborts."""
    made = [str(folder / "0.txnindex"), str(folder / "35.txnindex")]
    for path, aborted in ((made[0], FIRST), (made[0], SECOND), (made[1], THIRD)):
        append_aborted(path, aborted)
    return made


def test_the_file_is_kafkas(tmp_path: Path) -> None:
    append_aborted(str(tmp_path / "0.txnindex"), FIRST)
    assert (tmp_path / "0.txnindex").read_bytes().hex() == "0000" + "".join(
        f"{value:016x}" for value in (7, 10, 20, 15)
    )


def test_those_that_touch_a_range_are_found(tmp_path: Path) -> None:
    files = paths(tmp_path)
    assert aborted_between(files, 0, 100) == [FIRST, SECOND, THIRD]
    assert aborted_between(files, 21, 40) == [SECOND]
    assert aborted_between(files, 0, 10) == []
    assert aborted_between(files, 51, 100) == []
    assert aborted_between([str(tmp_path / "none")], 0, 100) == []


def test_truncating_forgets_those_that_ended_later(tmp_path: Path) -> None:
    path = paths(tmp_path)[0]
    truncate_aborted(path, 30)
    assert read_aborted(path) == [FIRST]
    truncate_aborted(str(tmp_path / "none"), 30)


def test_damage_is_seen(tmp_path: Path) -> None:
    path = paths(tmp_path)[0]
    assert not is_damaged(path, 0)
    assert is_damaged(path, 25)
    with Path(path).open("ab") as file:
        file.write(b"torn")
    assert is_damaged(path, 0)
    append_aborted(path, THIRD)
    assert read_aborted(path) == [FIRST, SECOND, THIRD]
