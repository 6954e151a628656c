"""The time index answers alike from memory and from its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.log.indexes.time_index import Timed, TimeIndex

BASE = 100


def index(folder: Path, *, loaded: bool) -> TimeIndex:
    made = TimeIndex(str(folder / "100.timeindex"), BASE)
    made.entries.load()
    for timestamp, offset in ((1000, 104), (1000, 106), (900, 107), (2000, 110)):
        made.append(timestamp, offset)
    if not loaded:
        made.entries.unload()
    return made


@pytest.mark.parametrize("loaded", [True, False])
def test_entries_are_added_only_for_later_times_and_found_by_them(tmp_path: Path, loaded: bool) -> None:
    made = index(tmp_path, loaded=loaded)
    assert [made.lookup(timestamp) for timestamp in (0, 999, 1000, 1999, 2000, 9999)] == [
        Timed(-1, 100),
        Timed(-1, 100),
        Timed(1000, 104),
        Timed(1000, 104),
        Timed(2000, 110),
        Timed(2000, 110),
    ]
    assert (len(made.entries), made.last()) == (2, Timed(2000, 110))


def test_the_file_is_kafkas(tmp_path: Path) -> None:
    index(tmp_path, loaded=False)
    assert (tmp_path / "100.timeindex").read_bytes().hex(" ", 4) == (
        "00000000 000003e8 00000004 00000000 000007d0 0000000a"
    )


@pytest.mark.parametrize(("offset", "kept"), [(111, 2), (110, 1), (104, 0)])
def test_truncating_forgets_later_offsets(tmp_path: Path, offset: int, kept: int) -> None:
    made = index(tmp_path, loaded=False)
    made.truncate_to(offset)
    assert (len(made.entries), (tmp_path / "100.timeindex").stat().st_size) == (kept, kept * 12)


def test_an_index_without_a_file_is_empty(tmp_path: Path) -> None:
    made = TimeIndex(str(tmp_path / "none.timeindex"), BASE)
    assert (made.lookup(500), made.last(), len(made.entries)) == (Timed(-1, BASE), Timed(-1, BASE), 0)
