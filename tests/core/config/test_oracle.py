"""Apache Kafka's own definitions judge ours: names, types, defaults, and what each makes of a text."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import pytest

from moldau.core.config.broker import BROKER_CONFIGS, DYNAMIC_BROKER_CONFIGS
from moldau.core.config.definitions import ConfigDef, ConfigError, ConfigType, format_value
from moldau.core.config.group import GROUP_CONFIGS
from moldau.core.config.topic import TOPIC_CONFIGS
from tests.apache_kafka import available, java_command

pytestmark = pytest.mark.skipif(not available(), reason="needs Java and Apache Kafka's jars")

ORACLE = Path(__file__).with_name("ConfigOracle.java")

KINDS = {"topic": TOPIC_CONFIGS, "broker": BROKER_CONFIGS, "group": GROUP_CONFIGS}
OUR_OWN_DEFAULTS = {"log.dir", "node.id"}  # a folder in sight, and a broker that starts without being numbered
TEXTS = {
    ConfigType.BOOLEAN: ("true", "FALSE", " true ", "", "yes", "1"),
    ConfigType.STRING: ("", "x", "producer", "GZIP", "gzip", "none", " CreateTime ", "bidirectional", "PLAINTEXT"),
    ConfigType.DOUBLE: ("0.5", "1", "-1", "1.5", "1e-7", "1.0f", ".5", "5.", "NaN", "Infinity", "inf", "1_0", "x", ""),
    ConfigType.LIST: (
        "",
        "delete",
        "compact,delete",
        "compact,compact",
        "delete, compact",
        "delete,",
        ",",
        "Delete",
        "*",
    ),
}
UNREADABLE = (ConfigType.CLASS, ConfigType.PASSWORD)  # we have no classes to look for, and Kafka hides passwords
NUMBERS = ("0", "1", "-1", "-2", "-3", "+7", " 12 ", "9", "10", "17", "23", "131072", "-131073", "2147483647")
NO_NUMBERS = ("2147483648", "-9223372036854775809", "9223372036854775808", "1.0", "0x10", "1_000", "x", "")


def oracle(*arguments: str, stdin: str = "") -> list[list[str]]:
    done = subprocess.run(
        java_command(str(ORACLE), *arguments), input=stdin, capture_output=True, text=True, timeout=120, check=True
    )
    return [line.split("\t") for line in done.stdout.splitlines()]


@cache
def listed() -> list[list[str]]:
    return oracle("list")


def of(kind: str) -> dict[str, list[str]]:
    return {row[1]: row[2:] for row in listed() if row[0] == kind}


def described(definition: ConfigDef) -> list[str]:
    default = format_value(definition.default)
    return [definition.type.name, "\0" if default is None else default, str(definition.internal).lower()]


def test_the_topic_keys_are_kafkas() -> None:
    assert {name: described(each) for name, each in TOPIC_CONFIGS.items()} == of("topic")


def test_the_group_keys_are_kafkas() -> None:
    assert {name: described(each) for name, each in GROUP_CONFIGS.items()} == of("group")
    synonyms = {each.name: ["".join(synonym.name for synonym in each.synonyms)] for each in GROUP_CONFIGS.values()}
    assert synonyms == of("group-synonym")


def test_the_broker_keys_have_kafkas_types_and_defaults() -> None:
    theirs = of("broker")
    assert list(BROKER_CONFIGS.keys() - theirs.keys()) == list(theirs.keys() - BROKER_CONFIGS.keys()) == []
    shared = BROKER_CONFIGS.keys() - OUR_OWN_DEFAULTS
    ours = {name: described(BROKER_CONFIGS[name]) for name in shared if name != "listener.security.protocol.map"}
    assert ours == {name: theirs[name] for name in ours}


def test_topic_keys_fall_back_to_kafkas_broker_keys() -> None:
    ours = {each.name: [" ".join(s.name for s in each.synonyms)] for each in TOPIC_CONFIGS.values() if each.synonyms}
    assert ours == of("synonym")


def test_only_what_kafka_changes_while_it_runs_changes_here() -> None:
    theirs = set(next(row[1] for row in listed() if row[0] == "dynamic").split())
    later = {"listeners", "listener.security.protocol.map"}  # a listener can't be opened without a restart yet
    assert (theirs & BROKER_CONFIGS.keys()) - later == DYNAMIC_BROKER_CONFIGS


def test_every_text_is_read_and_refused_as_kafka_does() -> None:
    cases = [
        (kind, name, text)
        for kind, definitions in KINDS.items()
        for name, definition in definitions.items()
        if definition.type not in UNREADABLE
        for text in TEXTS.get(definition.type, NUMBERS + NO_NUMBERS)
    ]
    theirs = oracle("parse", stdin="\n".join("\t".join(case) for case in cases) + "\n")
    ours = [parsed(KINDS[kind][name], text) for kind, name, text in cases]
    different = [(case, our, their) for case, our, their in zip(cases, ours, theirs, strict=True) if our != their]
    assert not different


def parsed(definition: ConfigDef, text: str) -> list[str]:
    try:
        value = definition.parse(text)
    except ConfigError as wrong:
        return ["error", str(wrong)]
    return ["ok", format_value(value) or ""]
