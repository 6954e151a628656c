"""What a scenario must complain about."""

from __future__ import annotations

import pytest

from tests.scenarios.clients import Progress, Record
from tests.scenarios.judging import Outcome, judge


class Told:
    """A producer and a consumer that have ended."""

    def __init__(self, records: list[Record]) -> None:
        self.progress = Progress()
        for record in records:
            self.progress.note(record)
        self.records = list(records)
        self.assigned: set[int] = set()
        self.assignments = 1
        self.complaints: list[str] = []

    def stop(self) -> None:
        pass


def complaints(read: list[Record], failures: tuple[str, ...] = ()) -> list[str]:
    sender = Told([Record("a", 0, 0), Record("b", 0, 1), Record("c", 1, 0)])
    sender.progress.failures += failures
    outcome = Outcome()
    judge(outcome, sender, [Told(read)])
    return outcome.complaints


WHOLE = [Record("a", 0, 0), Record("c", 1, 0), Record("b", 0, 1)]


def test_nothing_is_wrong() -> None:
    assert complaints(WHOLE) == []


@pytest.mark.parametrize(
    ("read", "what"),
    [
        (WHOLE[:2], "lost"),
        ([*WHOLE, Record("b", 0, 2)], "two offsets"),
        ([*WHOLE, Record("d", 0, 1)], "two values"),
        ([*WHOLE, Record("b", 0, 1)], "read twice"),
        ([Record("c", 1, 0), Record("b", 0, 1), Record("a", 0, 0)], "out of order"),
    ],
)
def test_it_is_complained_about(read: list[Record], what: str) -> None:
    assert any(what in each for each in complaints(read))


def test_sends_may_not_fail() -> None:
    assert complaints(WHOLE, ("it took too long",)) == ["1 sends failed, such as it took too long"]
