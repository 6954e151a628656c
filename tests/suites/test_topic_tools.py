"""`moldau topics`, `configs`, `get-offsets` and `delete-records` beside Apache Kafka's classes on one cluster."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from tests.cli.conftest import run_tool
from tests.suites.beside import check_session, told_by_kafka, told_by_us
from tests.suites.conftest import NewTopic
from tests.suites.tools import Tools

TOPICS = """
--create --topic {topic} --partitions 2 --config retention.ms=60000 --config cleanup.policy=compact
--create --topic {topic}
--create --topic {topic} --if-not-exists
--create --topic {topic}.x_y
--create --topic {topic}-2 --replication-factor 99
--create --topic {topic}-2 --config retention.ms=soon
--create --topic {topic}/2
--list --topic {topic}
--list --topic {topic},{topic}.x_y
--list --topic {topic}nope
--describe --topic {topic}
--describe --topic {topic}.*
--describe --topic {topic}.* --topics-with-overrides
--describe --topic {topic} --under-replicated-partitions
--describe --topic {topic} --at-min-isr-partitions
--describe --topic {topic} --partition-size-limit-per-response 1
--describe --topic {topic}nope
--describe --topic {topic}nope --if-exists
--describe --topic-id AAAAAAAAAAAAAAAAAAAAAQ --if-exists
--alter --topic {topic} --partitions 3
--alter --topic {topic} --partitions 3
--alter --topic {topic}nope --partitions 2
--alter --topic {topic}nope --partitions 2 --if-exists
--describe --topic {topic}
--delete --topic {topic}nope
--delete --topic {topic}nope --if-exists
--delete --topic {topic}.*
--list --topic {topic}.*
"""
REFUSED_TOPICS = """
--list --describe
--list --partitions 3
--list --topic [a
--create --topic {topic} --partitions 0
--create --topic {topic} --replication-factor 0
--create --topic {topic} --replica-assignment 1:1
--create --topic {topic} --replica-assignment 1:2,1
--create --topic {topic} --if-exists
--describe --topics-with-overrides --under-replicated-partitions
--describe --if-exists
--alter --topic {topic}
--delete
"""
CONFIGS = """
--describe --topic {topic}
--alter --topic {topic} --add-config retention.ms=5000,cleanup.policy=[compact,delete]
--describe --topic {topic}
--describe --topic {topic} --all
--alter --topic {topic} --delete-config retention.ms,no.such --add-config segment.bytes=2000000
--describe --topic {topic}
--alter --topic {topic} --add-config retention.ms=soon
--alter --topic {topic} --add-config no.such=1
--alter --topic {topic}nope --add-config retention.ms=1
--describe --topic {topic}nope
--alter --group {topic} --add-config consumer.session.timeout.ms=50000
--describe --group {topic}
--describe --group {topic}nope
--alter --group {topic} --delete-config consumer.session.timeout.ms
--alter --user {topic} --add-config producer_byte_rate=12345678
--alter --user {topic} --add-config request_percentage=0.0001
--describe --user {topic}
--alter --user {topic} --client app --add-config consumer_byte_rate=100
--describe --user {topic} --client app
--alter --user {topic} --client app --delete-config consumer_byte_rate
--alter --user {topic} --delete-config producer_byte_rate,request_percentage
--alter --client {topic} --add-config producer_byte_rate=1.5
--alter --user {topic} --add-config SCRAM-SHA-256=[iterations=8192,password=secret]
--describe --user {topic}
--alter --user {topic} --add-config SCRAM-SHA-256=[iterations=90000,password=secret]
--alter --user {topic} --delete-config SCRAM-SHA-256
--alter --user {topic} --delete-config SCRAM-SHA-256
--alter --ip 127.0.0.1 --add-config connection_creation_rate=1000
--describe --ip 127.0.0.1
--alter --ip 127.0.0.1 --delete-config connection_creation_rate
"""
REFUSED_CONFIGS = """
--describe
--describe --alter --topic {topic}
--describe --topic {topic} --add-config a=b
--describe --broker x
--describe --entity-type topics --entity-default
--describe --entity-type broker-loggers
--alter --topic {topic}
--alter --topic {topic} --add-config nosuch
--alter --topic {topic} --broker 1 --add-config a=b
--alter --entity-type topics --add-config a=b
--alter --entity-type brokers --add-config a=b
--alter --entity-type users --entity-name a --entity-type clients --add-config producer_byte_rate=5
--alter --user {topic} --add-config SCRAM-SHA-256=[iterations=12,password=secret]
--alter --user {topic} --add-config SCRAM-SHA-256=[password=secret],producer_byte_rate=1
--alter --user-defaults --add-config SCRAM-SHA-256=[password=secret]
--alter --client {topic} --add-config producer_byte_rate=x
--alter --ip 127.0.0.1 --add-config connection_creation=10
"""
ALL_OF_A_TYPE = """
--describe --entity-type topics
--describe --entity-type brokers
--describe --entity-type brokers --all
--describe --broker-defaults
--describe --entity-type client-metrics
--describe --broker 99
"""
OFFSETS = """
--topic {topic}
--topic {topic} --time earliest
--topic {topic} --time -1
--topic {topic} --time -3
--topic {topic} --time earliest-local
--topic {topic} --time latest-tiered
--topic {topic} --time 0
--topic {topic} --time 9999999999999
--topic {topic} --partitions 1,0
--topic-partitions {topic}:1,{topic}:5-
--topic-partitions {topic}:-1
--topic {topic} --partitions 9
--topic {topic}nope
"""
REFUSED_OFFSETS = """
--topic {topic} --time soon
--topic {topic} --partitions 1,x
--topic {topic} --topic-partitions {topic}
--topic-partitions {topic}:x
"""


@pytest.fixture
def pair() -> tuple[str, str]:
    """Two names for topics, of which neither is in the other."""
    return f"theirs-{uuid.uuid4().hex[:10]}", f"moldaus-{uuid.uuid4().hex[:10]}"


@pytest.mark.parametrize("session", [TOPICS, REFUSED_TOPICS], ids=["used", "refused"])
def test_topics(tools: Tools, pair: tuple[str, str], session: str) -> None:
    check_session(tools, "topics", session, topics=pair)


@pytest.mark.parametrize("session", [CONFIGS, REFUSED_CONFIGS], ids=["used", "refused"])
def test_configs(tools: Tools, new_topic: NewTopic, session: str) -> None:
    check_session(tools, "configs", session, topics=(new_topic(), new_topic()))


@pytest.mark.parametrize("line", ALL_OF_A_TYPE.strip().splitlines())
def test_everything_that_has_configurations(tools: Tools, new_topic: NewTopic, line: str) -> None:
    new_topic(2)
    assert told_by_us(tools, "configs", line)[:2] == told_by_kafka(tools, "configs", line)[:2]


def test_configurations_of_all_groups(tools: Tools) -> None:
    """Those that there are of other tests, in the order in which the broker has them or another."""
    (is_done, ours, *_), (is_done_there, apaches, *_) = (
        told(tools, "configs", "--describe --entity-type groups") for told in (told_by_us, told_by_kafka)
    )
    assert (is_done, sorted(ours)) == (is_done_there, sorted(apaches))


def test_topics_of_the_whole_cluster(tools: Tools, new_topic: NewTopic) -> None:
    """In the order of Apache Kafka's hash maps."""
    for _ in range(3):
        new_topic()
    for line in ("--list", "--list --exclude-internal", "--describe"):
        assert told_by_us(tools, "topics", line)[:2] == told_by_kafka(tools, "topics", line)[:2], line


@pytest.mark.parametrize("session", [OFFSETS, REFUSED_OFFSETS], ids=["used", "refused"])
def test_offsets(tools: Tools, new_topic: NewTopic, session: str) -> None:
    topic = new_topic(2)
    run_tool(tools.bootstrap, "produce", topic, "--partition", "1", stdin="a\nb\nc\n")
    check_session(tools, "get-offsets", session, topics=(topic, topic))


def test_records_are_deleted(tools: Tools, new_topic: NewTopic, tmp_path: Path) -> None:
    """One topic for each tool, and a partition for each of three answers."""
    told = []
    for tell in (told_by_kafka, told_by_us):
        topic = new_topic(3)
        for partition in "02":
            run_tool(tools.bootstrap, "produce", topic, "--partition", partition, stdin="a\nb\nc\n")
        named = [{"topic": topic, "partition": number, "offset": before} for number, before in enumerate((2, 0, -1))]
        file = tmp_path / f"{topic}.json"
        file.write_text(json.dumps({"partitions": named, "version": 1}))
        done, lines, _ = tell(tools, "delete-records", f"--offset-json-file {file}")
        told.append((done, sorted(line.replace(topic, "TOPIC") for line in lines)))
    assert told[0] == told[1]
    assert "partition: TOPIC-2\tlow_watermark: 3" in told[0][1]
