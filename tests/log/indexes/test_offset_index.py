"""The offset index answers alike from memory and from its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.log.indexes.offset_index import Indexed, OffsetIndex

BASE = 100
ENTRIES = [(104, 0), (110, 40), (2**31 + 50, 90)]


def index(folder: Path, *, loaded: bool) -> OffsetIndex:
    made = OffsetIndex(str(folder / "100.index"), BASE)
    made.entries.load()
    for offset, position in ENTRIES:
        made.append(offset, position)
    if not loaded:
        made.entries.unload()
    return made


@pytest.mark.parametrize("loaded", [True, False])
def test_a_search_begins_at_the_last_batch_that_ends_before(tmp_path: Path, loaded: bool) -> None:
    made = index(tmp_path, loaded=loaded)
    assert [made.lookup(offset) for offset in (100, 103, 104, 109, 110, 2**40)] == [
        Indexed(-1, 0),
        Indexed(-1, 0),
        Indexed(104, 0),
        Indexed(104, 0),
        Indexed(110, 40),
        Indexed(2**31 + 50, 90),
    ]
    assert (len(made.entries), made.last()) == (3, Indexed(2**31 + 50, 90))


def test_the_file_is_kafkas(tmp_path: Path) -> None:
    index(tmp_path, loaded=False)
    assert (tmp_path / "100.index").read_bytes().hex(" ", 4) == (
        "00000004 00000000 0000000a 00000028 7fffffce 0000005a"
    )


def test_saving_writes_what_is_new(tmp_path: Path) -> None:
    made = index(tmp_path, loaded=True)
    made.entries.save()
    made.append(2**31 + 51, 95)
    made.entries.save()
    assert (tmp_path / "100.index").stat().st_size == 32
    assert OffsetIndex(made.entries.path, BASE).last() == Indexed(2**31 + 51, 95)


@pytest.mark.parametrize(("offset", "kept"), [(111, 2), (110, 1), (104, 0), (100, 0), (2**40, 3)])
def test_truncating_forgets_batches_that_end_at_or_after(tmp_path: Path, offset: int, kept: int) -> None:
    made = index(tmp_path, loaded=False)
    made.truncate_to(offset)
    assert (len(made.entries), (tmp_path / "100.index").stat().st_size) == (kept, kept * 8)


def test_an_index_without_a_file_is_empty(tmp_path: Path) -> None:
    made = OffsetIndex(str(tmp_path / "none.index"), BASE)
    assert (made.lookup(500), made.last(), len(made.entries)) == (Indexed(-1, 0), Indexed(-1, 0), 0)
