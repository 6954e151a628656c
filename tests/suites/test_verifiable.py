"""Apache Kafka's VerifiableProducer and VerifiableConsumer, with which its own system tests judge a broker."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.brokers import running_broker
from tests.clients.drivers import LineProcess
from tests.suites.conftest import NewTopic
from tests.suites.tools import VERIFIABLE_CONSUMER, Printed, Tools
from tests.suites.verifiable import Member, produce

pytestmark = pytest.mark.xdist_group("verifiable")  # one process starts what they share, not three

ASSIGNORS = ("RangeAssignor", "RoundRobinAssignor", "StickyAssignor", "CooperativeStickyAssignor")
FILL_S_MAX = 30.0
CLASSIC = ("--group-protocol", "classic")
CONSUMER = ("--group-protocol", "consumer")
PROTOCOLS = pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER], ids=["classic", "consumer"])
EITHER = pytest.mark.parametrize(
    "protocol",
    [
        *((*CLASSIC, "--assignment-strategy", f"org.apache.kafka.clients.consumer.{name}") for name in ASSIGNORS),
        *((*CONSUMER, "--group-remote-assignor", name) for name in ("uniform", "range")),
    ],
    ids=[*ASSIGNORS, "uniform", "range"],
)

NewMember = Callable[..., Member]


def events(printed: Printed) -> list[dict[str, Any]]:
    assert printed.exit_code == 0, printed
    return [json.loads(line) for line in printed.lines]


def fill(bootstrap: str, topic: str, *, partitions: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(count):
        producer.produce(topic, str(number).encode(), partition=number % partitions)
    assert producer.flush(FILL_S_MAX) == 0


@pytest.fixture(scope="module")
def bootstrap(broker_kind: str) -> Iterator[str]:
    """A broker whose members of the consumer protocol are told to report ten times as often as they would be."""
    often = {"group.consumer.heartbeat.interval.ms": "500", "group.consumer.min.heartbeat.interval.ms": "500"}
    with running_broker(broker_kind, properties=often) as address:
        yield address


@pytest.fixture(scope="module")
def tools(bootstrap: str, tool_process: LineProcess) -> Tools:
    return Tools(tool_process, bootstrap)


@pytest.fixture
def member(bootstrap: str, group_id: str) -> Iterator[NewMember]:
    with ExitStack() as members:

        def start(topic: str, *options: str) -> Member:
            return members.enter_context(Member(bootstrap, "--topic", topic, "--group-id", group_id, *options))

        yield start


@pytest.mark.parametrize("acks", ["0", "1", "-1"])
def test_every_record_is_acknowledged(bootstrap: str, new_topic: NewTopic, acks: str) -> None:
    sent = produce(bootstrap, new_topic(), 500, "--acks", acks)
    assert [int(each["value"]) for each in sent] == list(range(500))
    # Without acknowledgements the client makes offsets up.
    assert acks == "0" or [each["offset"] for each in sent] == list(range(500))


def test_keys_and_prefixes_arrive(bootstrap: str, tools: Tools, new_topic: NewTopic, group_id: str) -> None:
    topic = new_topic(3)
    options = ("--repeating-keys", "3", "--value-prefix", "7", "--message-create-time", "1700000000000")
    sent = produce(bootstrap, topic, 9, *options)
    told = events(
        tools.run(VERIFIABLE_CONSUMER, "--topic", topic, "--group-id", group_id, "--max-messages", "9", "--verbose")
    )
    read = [(event["key"], event["value"]) for event in told if event["name"] == "record_data"]
    assert sorted(read) == sorted((each["key"], each["value"]) for each in sent)
    assert {value.partition(".")[0] for _, value in read} == {"7"}
    assert sorted({key for key, _ in read}) == ["0", "1", "2"]


@EITHER
def test_one_member_reads_and_commits_everything(
    bootstrap: str, tools: Tools, new_topic: NewTopic, group_id: str, protocol: tuple[str, ...]
) -> None:
    topic = new_topic(3)
    fill(bootstrap, topic, partitions=3, count=300)
    reading = ("--topic", topic, "--group-id", group_id, "--max-messages", "300", *protocol)
    told = events(tools.run(VERIFIABLE_CONSUMER, *reading))
    assert sum(event["count"] for event in told if event["name"] == "records_consumed") == 300
    assigned = [event["partitions"] for event in told if event["name"] == "partitions_assigned"]
    assert sorted(each["partition"] for partitions in assigned for each in partitions) == [0, 1, 2]
    assert all(event["success"] for event in told if event["name"] == "offsets_committed")
    rows = tools.groups("--describe", "--group", group_id).table[1:]
    assert {row[1] for row in rows} == {topic}
    assert [row[5] for row in rows] == ["0", "0", "0"], "the lag is gone"


@PROTOCOLS
def test_what_a_member_commits_by_itself_is_kept(
    bootstrap: str, tools: Tools, new_topic: NewTopic, group_id: str, protocol: tuple[str, ...]
) -> None:
    topic = new_topic()
    fill(bootstrap, topic, partitions=1, count=50)
    reading = ("--topic", topic, "--group-id", group_id, "--max-messages", "50", "--enable-autocommit", *protocol)
    told = events(tools.run(VERIFIABLE_CONSUMER, *reading))
    assert sum(event["count"] for event in told if event["name"] == "records_consumed") == 50
    assert not [event for event in told if event["name"] == "offsets_committed"]
    (row,) = tools.groups("--describe", "--group", group_id).table[1:]
    assert row[2:6] == ["0", "50", "50", "0"]


@PROTOCOLS
def test_members_share_partitions_and_take_over(
    bootstrap: str, new_topic: NewTopic, member: NewMember, protocol: tuple[str, ...]
) -> None:
    topic = new_topic(4)
    first, second = member(topic, *protocol), member(topic, *protocol)
    first.wait_for(lambda: len(first.partitions) == 2 and len(second.partitions) == 2, "two partitions each")
    assert first.partitions | second.partitions == {0, 1, 2, 3}
    produce(bootstrap, topic, 200, "--repeating-keys", "20")
    first.wait_for(lambda: first.consumed + second.consumed == 200, "all records")
    second.stop()
    first.wait_for(lambda: first.partitions == {0, 1, 2, 3}, "the partitions of the one that left")
    produce(bootstrap, topic, 100, "--repeating-keys", "20")
    first.wait_for(lambda: first.consumed + second.consumed == 300, "each record once")


@PROTOCOLS
def test_a_static_member_comes_back_to_its_partitions(
    new_topic: NewTopic, member: NewMember, protocol: tuple[str, ...]
) -> None:
    topic = new_topic(4)
    first = member(topic, "--group-instance-id", "one", *protocol)
    second = member(topic, "--group-instance-id", "two", *protocol)
    first.wait_for(lambda: len(first.partitions) == 2 and len(second.partitions) == 2, "two partitions each")
    before, rebalances = second.partitions, first.assignments
    second.stop()
    again = member(topic, "--group-instance-id", "two", *protocol)
    again.wait_for(lambda: again.partitions == before, "the same partitions")
    assert first.assignments == rebalances, "the other member saw nothing of it"
