"""The checker itself: what is planted is found, what only looks like it is not, and good histories are sound."""

from __future__ import annotations

import struct
import time
from pathlib import Path
from typing import Any

import pytest

from moldau.core.ids import Offset
from moldau.wire.batch import build_batch
from moldau.wire.records import Record
from tests.faults.cluster import history as h
from tests.faults.cluster.checker import INVARIANTS, Verdict, check
from tests.faults.cluster.history import Event, History, HistoryTail, Read, read_history
from tests.faults.cluster.model import Model
from tests.faults.cluster.replica_files import differences


class Story:
    """A history told step by step; each step is a tenth of a second after the one before."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.ids = 0

    def note(self, process: str, op: str, phase: str, **fields: Any) -> None:
        self.events.append(Event(len(self.events) / 10, process, op, phase, **fields))

    def send(
        self, value: str, offset: int = -1, end: str = h.OK, *, process: str = "p", txn: str = "", **fields: Any
    ) -> None:
        self.ids += 1
        fields = {"topic": "t", "partition": 0} | fields
        self.note(process, h.SEND, h.INVOKE, id=self.ids, value=value, txn=txn, **fields)
        self.note(process, h.SEND, end, id=self.ids, offset=offset)

    def end(self, txn: str, op: str = h.COMMIT, phase: str = h.OK) -> None:
        self.note("p", op, h.INVOKE, txn=txn)
        self.note("p", op, phase, txn=txn)

    def view(self, viewer: str, *, committed: bool = False, topics: tuple[str, ...] = ("t",)) -> None:
        self.note(viewer, h.VIEW, h.INVOKE, viewer=viewer, committed=committed, topics=list(topics))

    def poll(self, *records: tuple[int, str], viewer: str = "r", committed: bool = False) -> None:
        reads: list[Read] = [("t", 0, offset, value) for offset, value in records]
        self.note(viewer, h.POLL, h.OK, viewer=viewer, committed=committed, records=reads)

    def assigned(self, offset: int = -1, viewer: str = "r") -> None:
        self.note(viewer, h.ASSIGN, h.OK, viewer=viewer, partitions=[("t", 0)], offset=offset)

    def complete(self, viewer: str) -> None:
        self.note(viewer, h.VIEW, h.OK, viewer=viewer)

    def check(self) -> Verdict:
        return check(self.events)


def broken(verdict: Verdict) -> dict[int, int]:
    return {number: finding.count for number, finding in verdict.findings.items() if finding.count}


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_found_where_nothing_is_wrong(seed: int) -> None:
    events = Model(seed).run(1_500)
    assert {event.phase for event in events} == {h.INVOKE, h.OK, h.FAIL, h.UNKNOWN}
    assert broken(check(events)) == {}, check(events)


def test_every_invariant_has_words() -> None:
    assert list(Story().check().findings) == list(INVARIANTS)
    assert "1      0  a value read" in str(Story().check())


def test_1_a_failed_send_is_not_read() -> None:
    story = Story()
    story.send("a", end=h.FAIL)
    story.poll((0, "a"))
    assert broken(story.check()) == {1: 1}
    near = Story()
    near.send("a", end=h.UNKNOWN)
    near.poll((0, "a"))
    assert broken(near.check()) == {}


def test_1_an_aborted_send_is_not_read_as_committed() -> None:
    for committed, expected in ((True, {1: 1}), (False, {})):
        story = Story()
        story.send("a", 0, txn="x/1")
        story.end("x/1", h.COMMIT, h.UNKNOWN)
        story.end("x/1", h.ABORT)
        story.poll((0, "a"), committed=committed)
        assert broken(story.check()) == expected


def test_1_a_value_that_nobody_sent_is_not_read() -> None:
    story = Story()
    story.send("a", 0)
    story.poll((0, "a"), (1, "b"))
    verdict = story.check()
    assert broken(verdict) == {1: 1}
    assert verdict.findings[1].examples == ("r read 'b', which nobody sent, at 0.200 s",)


def test_2_an_offset_has_one_value() -> None:
    story = Story()
    for value in "ab":
        story.send(value, end=h.UNKNOWN, process=value)
    story.poll((0, "a"), viewer="r")
    story.poll((0, "b"), viewer="s")
    assert broken(story.check()) == {2: 1}
    near = Story()
    near.send("a", end=h.UNKNOWN)
    near.poll((0, "a"), viewer="r")
    near.poll((0, "a"), viewer="s")
    assert broken(near.check()) == {}


def test_2_an_acknowledged_offset_counts() -> None:
    story = Story()
    story.send("a", 0, process="p")
    story.send("b", 0, process="q")
    assert broken(story.check()) == {2: 1}


def test_3_what_is_acknowledged_is_not_passed_over() -> None:
    story = Story()
    story.send("a", 0)
    story.send("b", 1)
    story.assigned()
    story.poll((1, "b"))
    assert broken(story.check()) == {3: 1}
    near = Story()  # nobody came as far, and what was not acknowledged may be lost
    near.send("z", end=h.UNKNOWN)
    near.send("a", 0)
    near.send("b", 1)
    near.poll((0, "a"))
    assert broken(near.check()) == {}


def test_3_a_committed_transaction_is_acknowledged_and_an_unknown_one_is_not() -> None:
    for phase, expected in ((h.OK, {3: 1}), (h.UNKNOWN, {})):
        story = Story()
        story.send("a", 0, txn="x/1")
        story.end("x/1", phase=phase)
        story.send("b", 2)
        story.assigned()
        story.poll((2, "b"), committed=True)
        assert broken(story.check()) == expected


def test_4_a_write_has_one_offset() -> None:
    story = Story()
    story.send("a", 0)
    story.poll((0, "a"), (1, "a"))
    assert broken(story.check()) == {4: 1}
    near = Story()  # acknowledged twice is not written twice
    near.send("a", 0)
    near.poll((0, "a"), viewer="r")
    near.poll((0, "a"), viewer="s")
    assert broken(near.check()) == {}


@pytest.mark.parametrize(("error", "expected"), [("_AUTHENTICATION", {}), ("_TIMED_OUT", {4: 1})])
def test_4_a_producer_that_could_not_log_in_again_may_repeat_what_was_under_way(
    error: str, expected: dict[int, int]
) -> None:
    story = Story()
    story.note("p", h.SEND, h.INVOKE, id=90, value="a", topic="t", partition=0)
    story.note("p", h.SEND, h.INVOKE, id=91, value="b", topic="t", partition=0)
    story.note("p", h.SEND, h.UNKNOWN, id=91, error=f"KafkaError{{code={error}}}")
    story.note("p", h.SEND, h.OK, id=90, offset=1)
    story.poll((0, "a"), (1, "a"))
    assert broken(story.check()) == expected


def test_4_a_write_has_the_offset_that_was_acknowledged() -> None:
    story = Story()
    story.send("a", 0)
    story.poll((7, "a"))
    assert 4 in broken(story.check())
    near = Story()
    near.send("a", -1)
    near.poll((7, "a"))
    assert broken(near.check()) == {}


def values(story: Story, count: int = 4, txn: str = "") -> list[tuple[int, str]]:
    for offset in range(count):
        story.send(f"v{offset}", offset, txn=txn)
    return [(offset, f"v{offset}") for offset in range(count)]


def test_5_a_poll_skips_nothing() -> None:
    story = Story()
    all_values = values(story)
    story.poll(*all_values, viewer="s")
    story.poll(all_values[0], all_values[2])
    assert broken(story.check()) == {5: 1}
    near = Story()  # offset 4 is a marker
    known = values(near)
    near.send("after", 5)
    near.poll(*known, (5, "after"))
    assert broken(near.check()) == {}


def test_5_a_poll_does_not_go_back() -> None:
    story = Story()
    all_values = values(story)
    story.poll(*all_values)
    story.poll(*all_values[2:])
    assert broken(story.check()) == {5: 1}
    near = Story()
    known = values(near)
    near.poll(*known)
    near.assigned()
    near.poll(*known[2:])
    assert broken(near.check()) == {}


def test_5_a_reader_of_committed_values_skips_what_was_aborted() -> None:
    for op, expected in ((h.ABORT, set()), (h.COMMIT, {5})):
        story = Story()
        story.send("a", 0)
        story.send("b", 1, txn="x/1")
        story.send("c", 3)
        story.end("x/1", op)
        story.poll((1, "b"), viewer="raw")
        story.poll((0, "a"), (3, "c"), committed=True)
        assert set(broken(story.check())) == expected


def test_5_an_assigned_reader_begins_where_it_was_told() -> None:
    story = Story()
    all_values = values(story)
    story.poll(*all_values, viewer="s")
    story.assigned(offset=0)
    story.poll(*all_values[1:])
    assert broken(story.check()) == {5: 1}
    near = Story()
    known = values(near)
    near.poll(*known, viewer="s")
    near.assigned()
    near.poll(*known[1:])
    assert broken(near.check()) == {}


def test_6_sends_of_a_producer_keep_their_order() -> None:
    for process, expected in (("p", {6: 1}), ("q", {})):
        story = Story()
        story.send("a", end=h.UNKNOWN, process="p")
        story.send("b", end=h.UNKNOWN, process=process)
        story.poll((0, "b"), (1, "a"))
        assert broken(story.check()) == expected


def test_6_order_is_kept_within_a_partition() -> None:
    story = Story()
    story.send("a", 5, partition=0)
    story.send("b", 3, partition=1)
    assert broken(story.check()) == {}


def test_7_nothing_is_seen_before_its_commit() -> None:
    story = Story()
    story.send("a", 0, txn="x/1")
    story.poll((0, "a"), committed=True)
    story.end("x/1")
    assert broken(story.check()) == {7: 1}
    near = Story()  # the answer to a commit may come later than what was committed
    near.send("a", 0, txn="x/1")
    near.note("p", h.COMMIT, h.INVOKE, txn="x/1")
    near.poll((0, "a"), committed=True)
    near.note("p", h.COMMIT, h.OK, txn="x/1")
    near.send("b", 2, txn="x/2")
    near.poll((2, "b"), committed=False, viewer="raw")
    assert broken(near.check()) == {}


def test_7_a_transaction_is_seen_whole() -> None:
    for seen, expected in (((0,), {7: 1}), ((0, 1), {}), ((), {})):
        story = Story()
        story.view("r", committed=True)
        for offset in (0, 1):
            story.send(f"v{offset}", offset, txn="x/1")
        story.end("x/1", phase=h.UNKNOWN)
        story.poll(*((offset, f"v{offset}") for offset in seen), committed=True)
        story.complete("r")
        assert broken(story.check()) == expected


def test_8_every_viewer_sees_what_is_acknowledged() -> None:
    for viewers, expected in ((("r",), {8: 1}), (("r", "s"), {})):
        story = Story()
        for viewer in ("r", "s"):
            story.view(viewer)
        story.send("a", 0)
        story.send("lost", end=h.UNKNOWN)
        story.send("elsewhere", 0, topic="other")
        for viewer in viewers:
            story.poll((0, "a"), viewer=viewer)
        assert broken(story.check()) == expected


def test_10_an_end_ends_its_own_transaction() -> None:
    for phase, expected in ((h.UNKNOWN, {7: 1, 10: 1}), (h.OK, {7: 1})):
        story = Story()
        story.send("a", 0, txn="x/1")
        story.end("x/1", phase=phase)
        story.poll((0, "a"), committed=True)
        story.send("b", 2, txn="x/2")
        story.poll((2, "b"), committed=True)  # the end of x/1 came late, and committed half of x/2
        story.send("c", 4, txn="x/2")
        story.end("x/2")
        assert broken(story.check()) == expected


def test_10_an_end_that_was_sent_again_aborts_nothing_later() -> None:
    story = Story()
    story.view("r", committed=True)
    story.send("a", 0, txn="x/1")
    story.end("x/1")
    story.send("b", 2, txn="x/2")
    story.note("p", h.LATE_END, h.FAIL, txn="x/1")
    story.send("c", 3, txn="x/2")
    story.end("x/2")
    story.poll((0, "a"), (3, "c"), committed=True)  # b was aborted by what was sent again
    story.complete("r")
    assert {7, 10} <= broken(story.check()).keys()
    near = Story()
    near.events = story.events[:-2]
    near.poll((0, "a"), (2, "b"), (3, "c"), committed=True)
    near.complete("r")
    assert broken(near.check()) == {}


def test_11_a_record_is_copied_once() -> None:
    for copies, expected in ((1, {}), (2, {11: 1}), (0, {11: 1})):
        story = Story()
        story.send("a", 0, topic="plain")
        story.send("b", 1, topic="plain")
        story.send("copy b", 0, txn="x/0", source="b")
        story.end("x/0")
        reads = [(0, "copy b")]
        for number in range(copies):
            story.send(f"copy {number}", 2 * number + 2, txn=f"x/{number + 1}", source="a")
            story.end(f"x/{number + 1}")
            reads.append((2 * number + 2, f"copy {number}"))
        story.send("copy that was aborted", 20, txn="x/9", source="a")
        story.end("x/9", h.ABORT)
        story.poll(*reads, committed=True)
        story.note("run", h.FINAL, h.OK)
        assert broken(story.check()) == expected


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([(1, 5), (1, 5), (2, 5), (2, 9)], {}),
        ([(1, 5), (1, 4), (1, 5)], {12: 1}),
        ([(1, 5), (2, 4)], {12: 1}),
        ([(1, 5), (2, 7), (1, 6), (2, 7)], {}),  # the third is told by who does not know yet that another leads
        ([(1, 5), (1, 3), (1, 4)], {12: 2}),
    ],
)
def test_12_a_high_watermark_never_goes_back(told: list[tuple[int, int]], expected: dict[int, int]) -> None:
    story = Story()
    for each in told:
        story.note("observer", h.WATERMARKS, h.OK, detail={"t-0": list(each), "t-1": [1, 0]})
    assert broken(story.check()) == expected


def batch(offset: int, text: str, *, records: int = 1) -> bytes:
    made = build_batch([Record(Offset(n), 0, None, f"{text} {n}".encode()) for n in range(records)])
    return struct.pack(">q", offset) + bytes(made)[8:]


@pytest.fixture
def replicas(tmp_path: Path) -> dict[int, Path]:
    folders = {number: tmp_path / str(number) / "t-0" for number in (1, 2, 3)}
    for number, folder in folders.items():
        folder.mkdir(parents=True)
        parts = [batch(0, "a", records=3), batch(3, "b"), batch(4, "c")]
        if number == 2:  # this broker rolled earlier
            (folder / f"{0:020d}.log").write_bytes(parts[0])
            (folder / f"{3:020d}.log").write_bytes(b"".join(parts[1:]))
        else:
            (folder / f"{0:020d}.log").write_bytes(b"".join(parts))
    return folders


def test_9_equal_replicas(replicas: dict[int, Path]) -> None:
    assert differences("t-0", replicas, high_watermark=5) == []


def test_9_a_flipped_bit_below_the_high_watermark(replicas: dict[int, Path]) -> None:
    path = replicas[3] / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[len(batch(0, "a", records=3)) - 2] ^= 1
    path.write_bytes(data)
    (found,) = differences("t-0", replicas, high_watermark=5)
    assert found == "t-0 on brokers 1 and 3: the batches from offset 0 on differ (0 and 0)"
    assert broken(check([], differing_replicas=[found])) == {9: 1}


def test_9_what_is_not_committed_may_differ(replicas: dict[int, Path]) -> None:
    path = replicas[3] / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[: -len(batch(4, "c"))] + batch(4, "other") + b"torn")
    assert differences("t-0", replicas, high_watermark=4) == []
    assert len(differences("t-0", replicas, high_watermark=5)) == 1


def test_9_a_replica_without_committed_batches(replicas: dict[int, Path]) -> None:
    (replicas[2] / f"{3:020d}.log").unlink()
    (found,) = differences("t-0", replicas, high_watermark=5)
    assert found.endswith("brokers 1 and 2: one ends at offset 3, below the high watermark 5")


def test_9_both_end_too_early(replicas: dict[int, Path]) -> None:
    assert len(differences("t-0", replicas, high_watermark=6)) == 2


def test_a_history_is_on_disk_as_it_happens(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    history, tail = History(path), HistoryTail(path)
    history.note("p", h.SEND, h.INVOKE, id=1, topic="t", partition=0, value="a")
    assert [event.value for event in tail.more()] == ["a"]
    with path.open("ab") as file:
        file.write(b'{"at_s": 1')  # half a line: its writer was killed, or is writing still
    assert tail.more() == []
    assert [event.value for event in read_history([path])] == ["a"]
    history.close()


def test_two_hundred_thousand_operations_are_judged_in_time() -> None:
    events = Model(1).run(420_000)
    begun_s = time.process_time()
    verdict = check(events)
    took_s = time.process_time() - begun_s
    assert verdict.operations >= 200_000
    assert broken(verdict) == {}
    assert took_s < 20, f"{took_s:.1f} s"
