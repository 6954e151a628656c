"""The JSON of assignments that the tool reads and prints."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, TypeVar

from moldau.cli.failures import CommandFailed, UsageError
from moldau.core.ids import TopicPartition

ANY_LOG_DIR = "any"
VERSION = 1

T = TypeVar("T")

Assignment: TypeAlias = dict[TopicPartition, list[int]]


class Replica(NamedTuple):
    """In the order in which they are told of."""

    broker_id: int
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}-{self.broker_id}"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a reassignment file wants: replicas of partitions, and log directories of some of them."""

    partitions: list[tuple[TopicPartition, list[int]]] = field(default_factory=list)
    log_dirs: dict[Replica, str] = field(default_factory=dict)

    @property
    def topics(self) -> list[str]:
        return sorted({place.topic for place, _ in self.partitions})


def read_document(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except OSError as wrong:
        raise UsageError(f"cannot read {path}: {wrong.strerror}") from None
    except ValueError as wrong:
        raise UsageError(f"{path} is no valid JSON: {wrong}") from None
    if not isinstance(found, dict):
        raise UsageError(f"{path}: expected a JSON object")
    version = found.get("version", VERSION)
    if version != VERSION:
        raise UsageError(f"Not supported version field value {version}")
    return found


def read_plan(path: str) -> Plan:
    plan = Plan()
    for row in _rows(read_document(path), "partitions", path):
        place = TopicPartition(_typed(row, "topic", str, path), _typed(row, "partition", int, path))
        replicas = _list(row, "replicas", int, path)
        log_dirs = _list(row, "log_dirs", str, path) if "log_dirs" in row else [ANY_LOG_DIR] * len(replicas)
        if len(log_dirs) != len(replicas):
            raise CommandFailed(
                f"Size of replicas list {_shown(replicas)} is different from size of log dirs list"
                f" {_shown(log_dirs)} for partition {place}"
            )
        plan.partitions.append((place, replicas))
        for broker_id, log_dir in zip(replicas, log_dirs, strict=True):
            if log_dir != ANY_LOG_DIR:
                plan.log_dirs[Replica(broker_id, *place)] = log_dir
    return plan


def checked(plan: Plan) -> Assignment:
    """What is to be done must be unambiguous."""
    if not plan.partitions:
        raise CommandFailed("Partition reassignment list cannot be empty")
    if any(not replicas for _, replicas in plan.partitions):
        raise CommandFailed("Partition replica list cannot be empty")
    twice = duplicates(place for place, _ in plan.partitions)
    if twice:
        raise CommandFailed(
            f"Partition reassignment contains duplicate topic partitions: {','.join(map(str, sorted(twice)))}"
        )
    doubled = [(place, duplicates(replicas)) for place, replicas in plan.partitions if duplicates(replicas)]
    if doubled:
        told = ". ".join(
            f"{place} contains multiple entries for {','.join(map(str, found))}" for place, found in doubled
        )
        raise CommandFailed(f"Partition replica lists may not contain duplicate entries: {told}")
    return dict(plan.partitions)


def read_topics(path: str) -> list[str]:
    topics = [_typed(row, "topic", str, path) for row in _rows(read_document(path), "topics", path)]
    twice = duplicates(topics)
    if twice:
        raise CommandFailed(f"List of topics to reassign contains duplicate entries: {_shown(twice)}")
    return topics


def assignment_json(assignment: Assignment, log_dirs: Mapping[Replica, str]) -> str:
    rows = [
        {
            "topic": place.topic,
            "partition": place.partition,
            "replicas": replicas,
            "log_dirs": [log_dirs.get(Replica(each, *place), ANY_LOG_DIR) for each in replicas],
        }
        for place, replicas in sorted(assignment.items())
    ]
    return json.dumps({"version": VERSION, "partitions": rows}, separators=(",", ":"), ensure_ascii=False)


def duplicates(values: Iterable[T]) -> list[T]:
    return [value for value, count in Counter(values).items() if count > 1]


def _shown(values: Iterable[object]) -> str:
    return f"[{', '.join(map(str, values))}]"


def _rows(document: Mapping[str, Any], name: str, path: str) -> list[dict[str, Any]]:
    rows = document.get(name, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UsageError(f"{path}: {name}: expected a list of objects")
    return rows


def _typed(row: Mapping[str, Any], name: str, kind: type, path: str) -> Any:
    value = row.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise UsageError(f"{path}: {name}: expected {_NOUNS[kind]} in {json.dumps(row)}")
    return value


def _list(row: Mapping[str, Any], name: str, kind: type, path: str) -> list[Any]:
    values = row.get(name)
    if not isinstance(values, list) or not all(isinstance(each, kind) for each in values):
        raise UsageError(f"{path}: {name}: expected a list, each {_NOUNS[kind]}, in {json.dumps(row)}")
    return values


_NOUNS: Mapping[type, str] = {str: "a text", int: "a whole number"}
