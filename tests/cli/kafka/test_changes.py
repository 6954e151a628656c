"""What the options of `moldau configs` say."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.cli.failures import UsageError
from moldau.cli.kafka.configs.changes import changes, from_text
from moldau.cli.kafka.configs.options import parse
from moldau.cli.kafka.configs.quotas import credentials


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("a=1", {"a": "1"}),
        ("a=1,b=[x,y],c=3", {"a": "1", "b": "x,y", "c": "3"}),
        (" a = 1 , b=", {"a": "1", "b": ""}),
        ("SCRAM-SHA-256=[iterations=8192,password=s=t]", {"SCRAM-SHA-256": "iterations=8192,password=s=t"}),
    ],
)
def test_what_is_to_be_added(text: str, pairs: dict[str, str]) -> None:
    assert from_text(text) == pairs


@pytest.mark.parametrize("text", ["a", "a=1,b", "a=1=2", ""])
def test_what_is_no_pair(text: str) -> None:
    with pytest.raises(UsageError, match='must be in the format "key=val"'):
        from_text(text)


def test_a_password_that_is_empty() -> None:
    with pytest.raises(UsageError, match="Password must not be empty for SCRAM-SHA-256"):
        credentials("alice", {"SCRAM-SHA-256": "iterations=8192,password="})


def test_a_file_of_javas_properties(tmp_path: Path) -> None:
    file = tmp_path / "topic.properties"
    file.write_text(
        "# comment\nretention.ms=9\nsegment.ms : 70000\ncleanup.policy compact,\\\n  delete\n\n! and this\n"
    )
    wanted = changes(parse(["--alter", "--topic", "t", "--add-config-file", str(file), "--delete-config", "a, b"]))
    assert wanted.added == {"retention.ms": "9", "segment.ms": "70000", "cleanup.policy": "compact,delete"}
    assert wanted.deleted == ["a", "b"]


@pytest.mark.parametrize(
    ("arguments", "types", "names"),
    [
        ("--describe --topic t", ["topics"], ["t"]),
        ("--describe --entity-type users", ["users"], []),
        ("--describe --user-defaults", ["users"], [""]),
        ("--describe --user u --client c", ["clients", "users"], ["c", "u"]),
        (
            "--describe --entity-type users --entity-default --entity-type clients --entity-name c",
            ["users", "clients"],
            ["", "c"],
        ),
    ],
)
def test_what_has_configurations(arguments: str, types: list[str], names: list[str]) -> None:
    entities = parse(arguments.split()).entities
    assert (entities.types, entities.names) == (types, names)
