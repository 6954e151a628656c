"""Where each leader's records begin and end."""

from __future__ import annotations

from moldau.log.leader_epochs import EpochEnd, EpochStart, LeaderEpochs


def epochs() -> LeaderEpochs:
    return LeaderEpochs([EpochStart(1, 0), EpochStart(3, 10), EpochStart(4, 25)])


def test_an_epoch_ends_where_the_next_one_begins() -> None:
    assert [epochs().end_of(epoch, 30) for epoch in (0, 1, 2, 3, 4, 5, -1)] == [
        EpochEnd(0, 0),
        EpochEnd(1, 10),
        EpochEnd(1, 10),
        EpochEnd(3, 25),
        EpochEnd(4, 30),
        EpochEnd(-1, -1),
        EpochEnd(-1, -1),
    ]


def test_a_log_without_epochs_knows_none() -> None:
    assert LeaderEpochs().end_of(0, 5) == EpochEnd(-1, -1)


def test_an_offset_belongs_to_the_epoch_it_was_written_in() -> None:
    assert [epochs().epoch_of(offset) for offset in (0, 9, 10, 24, 25, 99)] == [1, 1, 3, 3, 4, 4]
    assert LeaderEpochs([EpochStart(2, 5)]).epoch_of(4) == -1


def test_an_epoch_is_noted_once() -> None:
    known = epochs()
    assert not known.assign(4, 27)
    assert known.assign(6, 27)
    assert (known.entries[-1], known.latest) == (EpochStart(6, 27), 6)


def test_an_epoch_without_records_gives_way_to_the_next() -> None:
    known = epochs()
    known.assign(5, 25)
    assert known.entries == [EpochStart(1, 0), EpochStart(3, 10), EpochStart(5, 25)]


def test_truncating_the_end_forgets_later_epochs() -> None:
    known = epochs()
    assert known.truncate_end(25)
    assert (known.entries, known.latest) == ([EpochStart(1, 0), EpochStart(3, 10)], 3)
    assert not known.truncate_end(25)


def test_truncating_the_start_moves_the_epoch_it_falls_in() -> None:
    known = epochs()
    assert known.truncate_start(12)
    assert known.entries == [EpochStart(3, 12), EpochStart(4, 25)]
    assert not known.truncate_start(12)
    assert not known.truncate_start(3)
