"""Which executors have answered, and how many have not."""

from __future__ import annotations

import json
from collections.abc import Iterator

from moldau.spark.pipelines.language.grammar import parse
from moldau.spark.pipelines.running.sessions.executor_probe import unreachable_registries
from moldau.spark.pipelines.running.sessions.executors import ROUNDS_MAX, gathered, wanted_by


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


def test_readers_by_a_registry_need_a_way_to_it() -> None:
    text = """set schema.registry.url = 'http://127.0.0.1:1,https://registry:8082/path';
        create stream a from topic 'a' with (valueFormat = protobuf);
        create sink s into topic 's' with (valueFormat = avro) as select * from a"""
    wanted = wanted_by(parse(text, "p.sql", name="p"))
    assert wanted.registries == (("127.0.0.1", 1), ("registry", 8082))
    assert "protobuf" in wanted.packages
    writing = wanted_by(parse(text.replace("protobuf", "string"), "p.sql", name="p"))
    assert (writing.registries, "protobuf" in writing.packages) == ((), False)
    assert list(unreachable_registries(wanted.registries[:1])) == [
        "a way to the schema registry at 127.0.0.1:1: Connection refused"
    ]
