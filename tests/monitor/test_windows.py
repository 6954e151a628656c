"""What is remembered between looks."""

from __future__ import annotations

import tracemalloc

from moldau.core.ids import TopicPartition
from moldau.monitor.rules import Commit
from moldau.monitor.windows import Window, Windows

PLACE = TopicPartition("orders", 0)


def offsets(windows: Windows, group: str = "billing") -> list[int]:
    window = windows.window(group, PLACE)
    return [each.offset for each in window.commits()] if window else []


def test_a_window_keeps_the_last_commits() -> None:
    window = Window()
    for number in range(5):
        assert window.add(Commit(number, number * 1_000, number, 7), size=3)
    assert window.commits() == [Commit(2, 2_000, 2, 7), Commit(3, 3_000, 3, 7), Commit(4, 4_000, 4, 7)]
    assert (window.first, window.last, len(window)) == (Commit(2, 2_000, 2, 7), Commit(4, 4_000, 4, 7), 3)
    assert Window(window.cells.tobytes()).commits() == window.commits()


def test_a_commit_soon_after_another_takes_its_place_and_its_time() -> None:
    window = Window()
    for number in range(25):
        window.add(Commit(number, number * 100, number), size=10, min_distance_ms=1_000)
    assert [(each.offset, each.timestamp_ms) for each in window.commits()] == [(9, 0), (19, 1_000), (24, 2_000)]


def test_a_commit_that_was_read_before_is_left_out() -> None:
    window = Window()
    assert window.add(Commit(1, 0), size=3, order=10)
    assert not window.add(Commit(1, 0), size=3, order=10)
    assert not window.add(Commit(0, 0), size=3, order=9)
    assert window.add(Commit(1, 0), size=3, order=11)


def test_lag_is_against_the_newest_end() -> None:
    windows = Windows(3)
    windows.add("billing", PLACE, Commit(4, 0))
    for end in (5, 9, 12, 15):
        windows.add_ends({PLACE: end})
    windows.add("billing", PLACE, Commit(6, 1))
    windows.add("billing", PLACE, Commit(16, 2))
    window = windows.window("billing", PLACE)
    assert window is not None
    assert [each.lag for each in window.commits()] == [None, 9, 0]
    assert [*windows.ends[PLACE]] == [9, 12, 15]


def test_a_commit_of_any_offset_is_kept() -> None:
    """Brokers take what a client says, and its lag may be more than a number of 64 bits holds."""
    windows = Windows(3)
    windows.add_ends({PLACE: 5})
    lowest = -(1 << 63)
    windows.add("billing", PLACE, Commit(3, 0))
    windows.add("billing", PLACE, Commit(lowest, 1))
    assert offsets(windows) == [3, lowest]


def poll(windows: Windows, offset: int | None, now_ms: int, *, reads_commits: bool = False) -> list[int]:
    committed = {} if offset is None else {PLACE: offset}
    windows.poll("billing", committed, now_ms=now_ms, patience_ms=100, reads_commits=reads_commits)
    return offsets(windows)


def test_a_polled_offset_becomes_a_commit_when_it_moves() -> None:
    windows = Windows(10)
    assert [poll(windows, 4, 10), poll(windows, 4, 50), poll(windows, 5, 60)] == [[], [], [4, 5]]
    assert [poll(windows, 5, 200), poll(windows, 3, 300)] == [[4, 5], [4, 5, 3]]
    window = windows.window("billing", PLACE)
    assert window is not None
    assert [each.timestamp_ms for each in window.commits()] == [10, 60, 300]


def test_a_polled_offset_becomes_a_commit_when_it_stands_still_for_long() -> None:
    windows = Windows(10)
    assert [poll(windows, 4, 10), poll(windows, 4, 109), poll(windows, 4, 110)] == [[], [], [4]]


def test_a_polled_offset_that_goes_away_is_forgotten() -> None:
    windows = Windows(10)
    assert [poll(windows, 4, 10), poll(windows, None, 20), poll(windows, 4, 119)] == [[], [], []]


def test_commits_that_are_read_are_not_polled_as_well() -> None:
    windows = Windows(10)
    assert [poll(windows, each, each * 30, reads_commits=True) for each in (1, 2, 3)] == [[], [], []]
    assert poll(windows, 3, 190, reads_commits=True) == [3]
    assert poll(windows, 5, 200, reads_commits=True) == [3], "the commit itself will be read"
    windows.add("billing", PLACE, Commit(5, 199), order=7)
    assert offsets(windows) == [3, 5]


def test_what_is_gone_is_forgotten() -> None:
    windows = Windows(10)
    other = TopicPartition("payments", 0)
    for group in ("billing", "audit"):
        for place in (PLACE, other):
            windows.add(group, place, Commit(1, 1))
    windows.add_ends({PLACE: 1, other: 1})
    windows.changed.clear()
    windows.remove("billing", PLACE)
    assert windows.changed == {("billing", PLACE)}
    windows.forget("audit", "orders")
    assert {*windows.groups["audit"]} == {"payments"}
    windows.forget_topics(["orders"])
    assert windows.groups == {"billing": {"orders": {}}}
    assert {*windows.ends} == {PLACE}
    assert ("audit", "orders") in windows.gone


def test_a_thousand_groups_of_three_partitions_are_some_megabytes() -> None:
    names = [f"group-{number}" for number in range(1_000)]
    places = [TopicPartition("orders", partition) for partition in range(3)]
    commits = [Commit(number, number * 1_000, 0, 0) for number in range(10)]
    tracemalloc.start()
    try:
        windows = Windows(10)
        for name in names:
            for place in places:
                for commit in commits:
                    windows.add(name, place, commit)
            windows.changed.clear()
        assert tracemalloc.get_traced_memory()[0] < 3 << 20
    finally:
        tracemalloc.stop()
