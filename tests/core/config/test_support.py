"""Every key of Apache Kafka is accounted for: it has a reader, or no effect, or a start with it is refused."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import moldau
from moldau.core.config.broker import BROKER_CONFIGS, LISTENER_KEYS
from moldau.core.config.group import GROUP_CONFIGS
from moldau.core.config.metadata_store import METADATA_STORE_CONFIGS
from moldau.core.config.monitoring import MONITORING_CONFIGS
from moldau.core.config.older_names import HONOURED, RENAMED
from moldau.core.config.support import REFUSED, WITHOUT_EFFECT, refusal, without_effect
from moldau.core.config.topic import TOPIC_CONFIGS

SOURCE = Path(moldau.__file__).parent
HERE = Path(__file__).parent
GUIDE = HERE.parents[2] / "docs" / "guides" / "configuration.md"

# The modules that define keys and classify them, and the applications, whose keys are those of Kafka's clients.
NO_READERS = (
    "core/config/keys/",
    "core/config/support.py",
    "core/config/older_names.py",
    "core/config/dynamic.py",  # it judges changes, whatever the keys are good for
    "cli/",
    "spark/",
)
READING_METHODS = ("int", "flag", "number", "text", "optional_text", "items", "value", "listener_int", "_set")
# Read for every topic and group, by way of the keys that they give their defaults to.
BY_TOPIC = {synonym.name for each in TOPIC_CONFIGS.values() for synonym in each.synonyms}
BY_GROUP = {synonym.name for each in GROUP_CONFIGS.values() for synonym in each.synonyms} | {
    name for name in BROKER_CONFIGS if re.match(r"group\.consumer\.(min|max)\.\w+\.(timeout|interval)\.ms", name)
}
# Topic keys that describe what one broker does not have.
TOPIC_KEYS_WITHOUT_EFFECT = {
    "preallocate",
    "remote.storage.enable",  # refused when it is set
    "local.retention.ms",
    "local.retention.bytes",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
}


def recorded(file: str) -> set[str]:
    return set((HERE / file).read_text().split())


@cache
def trees() -> dict[str, ast.Module]:
    found = {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text()) for path in SOURCE.rglob("*.py")}
    return {name: tree for name, tree in found.items() if not name.startswith(NO_READERS)}


@cache
def texts_in_the_code() -> set[str]:
    """Every string that could be the name of a key, but for the list of keys that may change while a broker runs."""
    nodes = [node for tree in trees().values() for node in ast.walk(tree)]
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


@cache
def attributes_in_the_code() -> set[str]:
    used = [tree for name, tree in trees().items() if name != "core/config/topic.py"]
    own_rules = ast.walk(trees()["core/config/topic.py"])
    nodes = [node for tree in used for node in ast.walk(tree)]
    return {node.attr for node in (*nodes, *own_rules) if isinstance(node, ast.Attribute)}


def has_reader(key: str) -> bool:
    return key in texts_in_the_code() or key in BY_TOPIC | BY_GROUP


def test_every_key_of_kafka_is_in_exactly_one_class() -> None:
    for key in recorded("broker_keys_4.3.1.txt"):
        classes = [key in REFUSED or refusal(key) is not None, without_effect(key) is not None]
        assert sum(classes) <= 1, key
        assert any(classes) or has_reader(key), f"nothing reads {key}: give it a reader, or a row in support.py"


def test_every_key_that_kafka_had_is_known() -> None:
    for key in recorded("broker_keys_3.9_only.txt"):
        is_read = key in METADATA_STORE_CONFIGS
        known = [key in HONOURED, key in RENAMED, without_effect(key) is not None, refusal(key) is not None, is_read]
        assert sum(known) == 1, key


def test_the_recorded_keys_are_the_ones_that_are_defined() -> None:
    assert recorded("broker_keys_4.3.1.txt") == BROKER_CONFIGS.keys()


def test_the_table_has_no_key_twice_and_none_that_is_made_up() -> None:
    listed = [*WITHOUT_EFFECT, *REFUSED]
    assert len(set(listed)) == len(listed)
    # Not in Kafka's own definitions: keys of dynamic throttles, and of releases before 3.9.
    others = {
        "replica.lag.max.messages", "quota.producer.default", "quota.consumer.default", "zookeeper.sync.time.ms",
    }  # fmt: skip
    assert set(listed) - recorded("broker_keys_4.3.1.txt") - recorded("broker_keys_3.9_only.txt") == others


def test_a_key_is_documented_if_it_has_an_effect() -> None:
    effective = {key for key in BROKER_CONFIGS if without_effect(key) is None and refusal(key) is None}
    assert {key for key, definition in BROKER_CONFIGS.items() if definition.doc} == effective


def test_the_guide_documents_no_key_without_effect() -> None:
    table = [line for line in GUIDE.read_text().splitlines() if line.startswith("| `")]
    keys = [key for line in table for key in re.findall(r"`([a-z][a-z.]+)`", line.split("|")[1])]
    keys = [key for key in keys if key in BROKER_CONFIGS]
    assert len(keys) > 15
    assert [key for key in keys if without_effect(key) or refusal(key) or not has_reader(key)] == []


def test_a_topic_key_is_read_or_known_to_have_no_effect() -> None:
    fields = {name: name.replace(".", "_") for name, each in TOPIC_CONFIGS.items() if not each.internal}
    idle = {name for name, field in fields.items() if field not in attributes_in_the_code()}
    assert idle <= TOPIC_KEYS_WITHOUT_EFFECT
    assert TOPIC_KEYS_WITHOUT_EFFECT - idle <= {"remote.storage.enable"}


def test_the_code_reads_only_keys_that_are_defined() -> None:
    """A name that is not defined ended a housekeeping task at its first turn: idle producers were never forgotten."""
    read = {
        (name, node.args[-1].value)
        for name, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in READING_METHODS
        and node.args
        and isinstance(node.args[-1], ast.Constant)
        and isinstance(node.args[-1].value, str)
        and "." in node.args[-1].value
    }
    assert len(read) > 50
    defined = {*BROKER_CONFIGS, *METADATA_STORE_CONFIGS, *MONITORING_CONFIGS}
    assert sorted(key for _, key in read if key not in defined) == []


def test_every_key_of_our_own_has_a_reader() -> None:
    for keys in (METADATA_STORE_CONFIGS, MONITORING_CONFIGS):
        assert [key for key in keys if not has_reader(key)] == []
        assert keys.keys().isdisjoint(BROKER_CONFIGS)


def test_older_names_lead_to_keys_that_are_there() -> None:
    assert {*HONOURED.values(), *RENAMED.values()} <= BROKER_CONFIGS.keys()
    assert {*HONOURED, *RENAMED}.isdisjoint(BROKER_CONFIGS)
    assert set(LISTENER_KEYS) <= BROKER_CONFIGS.keys()
