"""Which executors have answered, and how many have not."""

from __future__ import annotations

import json
from collections.abc import Iterator

from moldau.spark.pipelines.running.sessions.executors import ROUNDS_MAX, gathered


def told(folder: str, *lacks: str) -> str:
    return json.dumps({"host": "one", "folder": folder, "python": "3.11.7", "lacks": lacks})


def test_it_is_asked_until_each_has_answered() -> None:
    rounds: Iterator[list[str]] = iter([[told("app/0"), told("app/0")], [told("app/1", "the package moldau 1.0")]])
    found = gathered(lambda: next(rounds), lambda: 2)
    assert [(each.folder, each.lacks) for each in found.executors] == [
        ("app/0", ()),
        ("app/1", ("the package moldau 1.0",)),
    ]
    assert (found.silent, found.problem) == (0, "1 of 2 executors lack something")


def test_one_that_never_ran_a_task_is_counted() -> None:
    rounds = iter([[told("app/0")]] * ROUNDS_MAX)
    found = gathered(lambda: next(rounds), lambda: 2)
    assert (list(rounds), len(found.executors), found.silent) == ([], 1, 1)
    assert str(found.problem).startswith("1 of 2 executors ran no task: ")


def test_one_that_has_gone_is_not_waited_for() -> None:
    counts = iter([2, 1, 1])
    found = gathered(lambda: [told("app/0")], lambda: next(counts))
    assert (found.silent, found.problem) == (0, None)
