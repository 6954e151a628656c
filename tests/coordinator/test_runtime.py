from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Callable, Hashable
from typing import Any

import pytest

from moldau.coordinator.journal import CoordinatorRecord, TransactionalProducer
from moldau.coordinator.runtime import Runtime
from moldau.core.decision import Decision, Delayed, Released, Slices, Timer, sliced
from moldau.core.errors import ApiError, ErrorCode
from tests.coordinator.journals import MemoryJournal
from tests.coordinator.loops import on_a_loop


class Clock:
    def now_ms(self) -> int:
        return 1_000

    def elapsed_ms(self) -> int:
        return 1_000


class Tally:
    """A machine whose facts are words; words in lower case are not logged."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.fired: list[Hashable] = []
        self.attempts = 0

    def apply(self, fact: str) -> None:
        self.words.append(fact)

    def encode(self, fact: str) -> CoordinatorRecord | None:
        return None if fact.islower() else (fact.encode(), b"")

    def decide_timer(self, key: Hashable, now_ms: int) -> Decision[None]:
        self.attempts += 1
        assert key != "broken", "a mistake"
        if key == "broken slice":
            return sliced(self._breaking())
        self.fired.append(key)
        return Decision((f"T{key}",), None, released=(Released(key, "timer"),))

    def _breaking(self) -> Slices[None]:
        yield Decision(("A",), None)
        raise AssertionError("a mistake")


def failed(error: ErrorCode) -> str:
    return error.name


def runtime(journal: MemoryJournal) -> Runtime[Tally]:
    return Runtime(Tally(), journal, clock=Clock())


def say(*words: str, reply: Any = "done", **other: Any) -> Callable[[Tally, int], Decision[Any]]:
    return lambda _, now_ms: Decision(words, reply, **other)


@on_a_loop
async def test_a_decision_without_facts_is_answered_at_once() -> None:
    assert runtime(MemoryJournal()).write(say(), failed) == "done"


@on_a_loop
async def test_facts_are_applied_at_once_and_the_reply_waits_for_the_journal() -> None:
    journal = MemoryJournal()
    tally = runtime(journal)
    reply = tally.write(say("A"), failed)
    assert tally.machine.words == ["A"], "the next decision builds on this one"
    assert isinstance(reply, Future)
    assert await reply == "done"
    assert journal.appends == [[(b"A", b"")]]


@on_a_loop
async def test_decisions_of_one_turn_share_an_append() -> None:
    journal = MemoryJournal()
    tally = runtime(journal)
    replies = [tally.write(say(word, reply=word), failed) for word in "ABC"]
    assert await asyncio.gather(*replies) == ["A", "B", "C"]
    assert len(journal.appends) == 1


@on_a_loop
async def test_a_reader_hears_nothing_that_is_not_committed() -> None:
    journal = MemoryJournal(commits_at_once=False)
    tally = runtime(journal)
    tally.write(say("A"), failed)
    reading = tally.write(lambda machine, _: Decision.reply_only(list(machine.words)), lambda error: [error.name])
    await asyncio.sleep(0.01)
    assert isinstance(reading, Future)
    assert not reading.done()
    journal.commit()
    assert await reading == ["A"]


@on_a_loop
async def test_facts_of_the_moment_are_not_logged() -> None:
    journal = MemoryJournal()
    tally = runtime(journal)
    assert tally.write(say("a"), failed) == "done"
    await asyncio.sleep(0)
    assert (tally.machine.words, journal.appends) == (["a"], [])


@on_a_loop
async def test_one_who_waits_is_released_when_the_facts_are_committed() -> None:
    journal = MemoryJournal(commits_at_once=False)
    tally = runtime(journal)
    waiting = tally.write(say(reply=Delayed("k")), failed)
    tally.write(say("A", released=(Released("k", "go"), Released("nobody", "go"))), failed)
    await asyncio.sleep(0.01)
    assert isinstance(waiting, Future)
    assert not waiting.done()
    journal.commit()
    assert await waiting == "go"


@on_a_loop
async def test_one_may_be_released_by_its_own_decision() -> None:
    tally = runtime(MemoryJournal())
    waiting = tally.write(say(reply=Delayed("k"), released=(Released("k", "go"),)), failed)
    assert isinstance(waiting, Future)
    assert await waiting == "go"


@on_a_loop
async def test_who_asks_again_takes_the_place_of_who_asked_before() -> None:
    tally = runtime(MemoryJournal())
    first = tally.write(say(reply=Delayed("k")), failed)
    second = tally.write(say(reply=Delayed("k")), failed)
    tally.write(say(released=(Released("k", "go"),)), failed)
    assert isinstance(first, Future)
    assert isinstance(second, Future)
    assert first.cancelled()
    assert await second == "go"


@on_a_loop
async def test_one_whose_connection_is_gone_is_no_trouble() -> None:
    tally = runtime(MemoryJournal())
    waiting = tally.write(say(reply=Delayed("k")), failed)
    assert isinstance(waiting, Future)
    waiting.cancel()
    assert tally.write(say(released=(Released("k", "go"),)), failed) == "done"


@on_a_loop
async def test_timers_decide_too() -> None:
    tally = runtime(MemoryJournal())
    waiting = tally.write(say(reply=Delayed("k"), timers=(Timer("k", 1_005), Timer("other", 9_000_000))), failed)
    assert isinstance(waiting, Future)
    assert await waiting == "timer"
    assert (tally.machine.fired, tally.machine.words) == (["k"], ["Tk"])


@on_a_loop
async def test_a_timer_that_fails_leaves_the_others_alone() -> None:
    tally = runtime(MemoryJournal())
    tally.write(say(timers=(Timer("broken", 1_001), Timer("a", 1_001))), failed)
    await asyncio.sleep(0.02)
    assert tally.machine.fired == ["a"]


@pytest.mark.parametrize("key", ["broken", "broken slice"])
@on_a_loop
async def test_a_timer_that_failed_fires_again(
    key: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("moldau.coordinator.runtime.TIMER_RETRY_MS", 1)
    tally = runtime(MemoryJournal())
    tally.write(say(timers=(Timer(key, 1_001),)), failed)
    while tally.machine.attempts < 3:  # noqa: ASYNC110 - nobody tells of it
        await asyncio.sleep(0.001)
    assert "a mistake" in caplog.text
    tally.stop()
    attempts = tally.machine.attempts
    await asyncio.sleep(0.02)
    assert tally.machine.attempts == attempts


@on_a_loop
async def test_a_timer_can_be_moved_and_cancelled() -> None:
    tally = runtime(MemoryJournal())
    tally.write(say(timers=(Timer("a", 1_001), Timer("b", 1_001), Timer("c", 1_020))), failed)
    tally.write(say(timers=(Timer("a", None), Timer("b", 9_000_000), Timer("c", 1_002))), failed)
    await asyncio.sleep(0.03)
    assert tally.machine.fired == ["c"]


@pytest.mark.parametrize(
    ("wrong", "heard"),
    [
        (ErrorCode.KAFKA_STORAGE_ERROR, "NOT_COORDINATOR"),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, "NOT_COORDINATOR"),
        (ErrorCode.NOT_ENOUGH_REPLICAS, "COORDINATOR_NOT_AVAILABLE"),
        (ErrorCode.CORRUPT_MESSAGE, "UNKNOWN_SERVER_ERROR"),
    ],
)
@on_a_loop
async def test_when_the_journal_fails_everybody_hears_and_the_runtime_ends(wrong: ErrorCode, heard: str) -> None:
    journal = MemoryJournal()
    journal.fails_with = ApiError(wrong)
    tally = runtime(journal)
    waiting = tally.write(say(reply=Delayed("k"), timers=(Timer("t", 1_001),)), failed)
    writing = tally.write(say("A"), failed)
    assert isinstance(writing, Future)
    assert isinstance(waiting, Future)
    assert [await writing, await waiting] == [heard, heard]
    assert tally.is_stopped
    await asyncio.sleep(0.01)
    assert tally.machine.fired == []


@on_a_loop
async def test_a_decision_too_large_for_a_batch_never_happened() -> None:
    journal = MemoryJournal(entry_bytes_max=1_000)
    tally = runtime(journal)
    assert tally.write(say("A" * 1_000), failed) == "UNKNOWN_SERVER_ERROR"
    assert (tally.machine.words, tally.is_stopped) == ([], False)


@on_a_loop
async def test_a_decision_too_large_for_a_batch_is_said_once_however_often_it_is_tried(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tally = runtime(MemoryJournal(entry_bytes_max=100))
    for _ in range(50):
        assert tally.write(say("A" * 100), failed) == "UNKNOWN_SERVER_ERROR"
    assert len(caplog.records) == 1


@on_a_loop
async def test_facts_that_make_sense_one_by_one_go_into_as_many_batches_as_they_need() -> None:
    journal = MemoryJournal(entry_bytes_max=1_000)
    tally = runtime(journal)
    words = ["A" * 300, "B" * 300, "C" * 300, "D" * 300]
    reply = tally.write(say(*words, timers=(Timer("k", 1_001),), is_whole=False), failed)
    assert isinstance(reply, Future)
    assert await reply == "done"
    assert tally.machine.words == words
    assert [[key.decode() for key, _ in append] for append in journal.appends] == [words[:2], words[2:]]
    await asyncio.sleep(0.02)
    assert tally.machine.fired == ["k"]


@on_a_loop
async def test_nobody_waits_for_facts_behind_others_that_could_not_be_written() -> None:
    journal = MemoryJournal(entry_bytes_max=1_000)
    tally = runtime(journal)
    before = tally.write(say("A" * 500), failed)
    journal.fails_with = ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
    assert tally.write(say("B" * 500), failed) == "NOT_COORDINATOR"
    assert isinstance(before, Future)
    assert await before == "NOT_COORDINATOR"
    assert tally.is_stopped


@on_a_loop
async def test_a_mistake_of_ours_in_an_append_leaves_nobody_without_an_answer() -> None:
    journal = MemoryJournal()
    journal.fails_with = ValueError("a mistake")
    told: list[str] = []
    tally = Runtime(Tally(), journal, clock=Clock(), on_failed=lambda: told.append("failed"))
    writing = tally.write(say("A"), failed)
    assert isinstance(writing, Future)
    assert await asyncio.wait_for(writing, 5) == "UNKNOWN_SERVER_ERROR"
    assert (tally.is_stopped, told) == (True, ["failed"])


@on_a_loop
async def test_when_the_disk_fails_after_an_append_everybody_hears_and_the_runtime_ends() -> None:
    journal = MemoryJournal(commits_at_once=False)
    told: list[str] = []
    tally = Runtime(Tally(), journal, clock=Clock(), on_failed=lambda: told.append("failed"))
    writing = tally.write(say("A"), failed, at_once=True)
    assert isinstance(writing, Future)
    journal.lose_what_was_appended()
    assert await writing == "NOT_COORDINATOR"
    assert (tally.is_stopped, told) == (True, ["failed"])


@on_a_loop
async def test_more_than_a_batch_holds_goes_into_two() -> None:
    journal = MemoryJournal(entry_bytes_max=1_000)
    tally = runtime(journal)
    replies = [tally.write(say(letter * 500, reply=letter), failed) for letter in "ABC"]
    assert await asyncio.gather(*replies) == ["A", "B", "C"]
    assert [len(append) for append in journal.appends] == [1, 1, 1]


@on_a_loop
async def test_a_lost_partition_sends_everybody_away() -> None:
    journal = MemoryJournal(commits_at_once=False)
    tally = runtime(journal)
    waiting = tally.write(say(reply=Delayed("k")), failed)
    writing = tally.write(say("A"), failed)
    await asyncio.sleep(0.01)
    journal.lose()
    assert isinstance(writing, Future)
    assert isinstance(waiting, Future)
    assert [await writing, await waiting] == ["NOT_COORDINATOR"] * 2


@on_a_loop
async def test_at_the_end_what_was_decided_is_written() -> None:
    journal = MemoryJournal()
    tally = runtime(journal)
    reply = tally.write(say("A"), failed)
    tally.stop()
    assert isinstance(reply, Future)
    assert await reply == "done"
    assert journal.appends == [[(b"A", b"")]]


@on_a_loop
async def test_what_belongs_to_a_transaction_is_a_batch_of_its_own() -> None:
    journal = MemoryJournal()
    tally = runtime(journal)
    before = tally.write(say("A"), failed)
    assert tally.write(say("B"), failed, producer=TransactionalProducer(7, 0)) == "done"
    after = tally.write(say("C"), failed)
    assert isinstance(before, Future)
    assert isinstance(after, Future)
    assert [await before, await after] == ["done", "done"]
    assert [[key for key, _ in append] for append in journal.appends] == [[b"A"], [b"B"], [b"C"]]
    assert journal.producers == [None, TransactionalProducer(7, 0), None]


@on_a_loop
async def test_a_producer_that_the_log_refuses_harms_nobody_else() -> None:
    journal = MemoryJournal()
    tally = runtime(journal)
    waiting = tally.write(say(reply=Delayed("k")), failed)
    journal.fails_with = ApiError(ErrorCode.INVALID_PRODUCER_EPOCH)
    assert tally.write(say("A"), failed, producer=TransactionalProducer(7, 0)) == "INVALID_PRODUCER_EPOCH"
    assert (tally.machine.words, tally.is_stopped) == ([], False)
    assert isinstance(waiting, Future)
    assert not waiting.done()


def slices(*parts: Decision[Any]) -> Callable[[Tally, int], Decision[Any]]:
    def steps() -> Slices[Any]:
        yield from parts[:-1]
        return parts[-1]

    return lambda *_: sliced(steps())


@on_a_loop
async def test_between_the_parts_of_a_long_decision_others_have_their_turn() -> None:
    journal = MemoryJournal()
    tally = runtime(journal)
    long = tally.write(slices(Decision(("A",), None), Decision(("B",), None), Decision(("C",), "all")), failed)
    assert isinstance(long, Future)
    assert tally.machine.words == ["A"]
    short = tally.write(say("X", reply="one"), failed)
    assert isinstance(short, Future)
    assert [await short, await long] == ["one", "all"]
    assert tally.machine.words == ["A", "X", "B", "C"]
    assert [key for append in journal.appends for key, _ in append] == [b"A", b"X", b"B", b"C"]


@on_a_loop
async def test_the_reply_of_a_long_decision_waits_until_all_of_it_is_committed() -> None:
    journal = MemoryJournal(commits_at_once=False)
    tally = runtime(journal)
    long = tally.write(slices(Decision(("A",), None), Decision(("B",), "all")), failed)
    assert isinstance(long, Future)
    while len(journal.appends) < 2:  # noqa: ASYNC110 - the loop's turns are what is waited for
        await asyncio.sleep(0)
    assert not long.done()
    journal.commit()
    assert await long == "all"


@on_a_loop
async def test_a_long_decision_ends_with_the_runtime() -> None:
    tally = runtime(MemoryJournal())
    long = tally.write(slices(Decision(("A",), None), Decision(("B",), "all")), failed)
    tally.stop()
    assert isinstance(long, Future)
    assert await long == "NOT_COORDINATOR"
    assert tally.machine.words == ["A"]


@on_a_loop
async def test_a_long_decision_that_breaks_is_answered(caplog: pytest.LogCaptureFixture) -> None:
    def steps() -> Slices[str]:
        yield Decision(("A",), "")
        raise RuntimeError("a mistake")

    tally = runtime(MemoryJournal())
    long = tally.write(lambda *_: sliced(steps()), failed)
    assert isinstance(long, Future)
    assert await long == "UNKNOWN_SERVER_ERROR"
    assert "a mistake" in caplog.text
    assert tally.write(say("X"), failed) != "UNKNOWN_SERVER_ERROR"


@on_a_loop
async def test_what_is_too_large_for_a_batch_may_be_decided_otherwise() -> None:
    journal = MemoryJournal(entry_bytes_max=1_000)
    tally = runtime(journal)
    waiting = tally.write(say(reply=Delayed("k")), failed)
    instead = Decision(("B",), "instead", released=(Released("k", "too large"),))
    answer = tally.write(say("A" * 2_000, otherwise=lambda _: instead), failed)
    assert isinstance(answer, Future)
    assert isinstance(waiting, Future)
    assert [await answer, await waiting] == ["instead", "too large"]
    assert tally.machine.words == ["B"]
