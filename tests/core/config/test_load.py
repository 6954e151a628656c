from __future__ import annotations

import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.core.config.definitions import ConfigError
from moldau.core.config.listeners import Listener
from moldau.core.config.load import load_config, parse_overrides, parse_properties

KRAFT_PROPERTIES = """\
# as Kafka ships it
process.roles=broker,controller
node.id=3
controller.quorum.voters=3@localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
num.network.threads=3
log.dirs=/tmp/a,/tmp/b
log.retention.hours=168
"""


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=1", {"a": "1"}),
        ("a : 1", {"a": "1"}),
        ("a 1", {"a": "1"}),
        ("  a=1", {"a": "1"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("# a=1\n! b=2\n\n", {}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1,\\\n   2,\\\n   3", {"a": "1,2,3"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a\\=b=c", {"a=b": "c"}),
        ("a\\:b c", {"a:b": "c"}),
        ("a=x=y:z", {"a": "x=y:z"}),
        ("a=\\u0041\\t\\n\\q", {"a": "A\t\nq"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=trailing  ", {"a": "trailing  "}),
        ("a=1 # no comment", {"a": "1 # no comment"}),
        ("a=held\\", {"a": "held"}),
    ],
)
def test_properties_follow_javas_rules(text: str, values: dict[str, str]) -> None:
    assert parse_properties(text) == values


@given(st.text())
def test_any_text_is_some_properties(text: str) -> None:
    parse_properties(text)


@given(
    st.dictionaries(st.from_regex(r"[a-z][a-z.]{0,20}", fullmatch=True), st.from_regex(r"[a-z0-9:/=]*", fullmatch=True))
)
def test_written_properties_are_read_back(values: dict[str, str]) -> None:
    written = "".join(f"{name} = {value}\n" for name, value in values.items())
    assert parse_properties(written) == values


def test_a_file_made_for_kafka_is_accepted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(KRAFT_PROPERTIES + "my.plugin.key=1\n")
    with caplog.at_level(logging.INFO, logger="moldau.config"):
        config = load_config(properties, {}, {})
    assert config.node_id == 3
    assert config.listeners == (Listener("PLAINTEXT", "", 9092),)
    assert config.advertised_listeners == (Listener("PLAINTEXT", "localhost", 9092),)
    assert config.log_dirs == ("/tmp/a", "/tmp/b")
    warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warned == ["unknown configuration keys are ignored: my.plugin.key"]


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text("num.partitions=2\nlog.retention.ms=2\nlog.segment.bytes=2000000\nbroker.id=2")
    environment = {"MOLDAU_NUM_PARTITIONS": "3", "MOLDAU_LOG_RETENTION_MS": "3", "MOLDAU_NOT_A_KEY": "x", "PATH": "/"}
    config = load_config(properties, environment, {"num.partitions": "4", "node.id": "4"}, defaults={"log.dirs": "d"})
    assert (config.int("num.partitions"), config.node_id, config.int("broker.id"), config.log_dirs) == (4, 4, 4, ("d",))
    assert (config.topic_defaults.retention_ms, config.topic_defaults.segment_bytes) == (3, 2_000_000)


def test_a_variable_that_names_no_key_is_reported_unless_it_is_the_tools(caplog: pytest.LogCaptureFixture) -> None:
    environment = {"MOLDAU_NUM_PARTITONS": "3", "MOLDAU_BOOTSTRAP_SERVERS": "here:9092", "MOLDAU_NUM_PARTITIONS": "2"}
    with caplog.at_level(logging.WARNING):
        assert load_config(None, environment, {}).int("num.partitions") == 2
    assert caplog.messages == ["environment variables that name no configuration key are ignored: MOLDAU_NUM_PARTITONS"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.properties"):
        load_config(tmp_path / "none.properties", {}, {})


def test_overrides_are_key_value_pairs() -> None:
    assert parse_overrides(["a=1", " b = c=d"]) == {"a": "1", "b": "c=d"}
    with pytest.raises(ConfigError, match="key=value"):
        parse_overrides(["a"])
