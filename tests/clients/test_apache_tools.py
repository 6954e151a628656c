"""Apache Kafka's own command-line tools, as an operator uses them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.clients.conftest import NewTopic, unique_name
from tests.clients.drivers import Drivers, LineProcess, Record
from tests.clients.toolchains import tool_host

VISIBLE_S_MAX = 10.0
TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
GET_OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
API_VERSIONS = "org.apache.kafka.tools.BrokerApiVersionsCommand"
PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
CLUSTER = "org.apache.kafka.tools.ClusterTool"

NEEDED_APIS = {
    "Produce", "Fetch", "ListOffsets", "Metadata", "ApiVersions", "CreateTopics", "DeleteTopics", "CreatePartitions",
    "DeleteRecords", "DescribeConfigs", "AlterConfigs", "IncrementalAlterConfigs", "DescribeCluster", "DescribeLogDirs",
    "DescribeTopicPartitions", "ListConfigResources", "InitProducerId", "OffsetForLeaderEpoch", "DescribeProducers",
    "FindCoordinator",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tools:
    host: LineProcess
    bootstrap: str

    def run(self, tool: str, *args: str, stdin: str = "", exit_code: int = 0) -> str:
        """What the tool printed; it must end with this exit code."""
        done = self.host.ask({"class": tool, "args": [*args, "--bootstrap-server", self.bootstrap], "stdin": stdin})
        assert done["exit"] == exit_code, f"{tool} {args}: {done['out']}{done['err']}"
        return str(done["out"])

    def run_until(self, expected: str, tool: str, *args: str) -> str:
        """The answer to a change may come before the change is seen everywhere, so ask again until it is."""
        deadline = time.monotonic() + VISIBLE_S_MAX
        while expected not in (printed := self.run(tool, *args)):
            assert time.monotonic() < deadline, f"{expected!r} did not come: {printed}"
        return printed


@pytest.fixture(scope="module")
def tools(bootstrap: str) -> Iterator[Tools]:
    with LineProcess(tool_host) as host:
        yield Tools(host, bootstrap)


def test_topics_are_created_listed_described_altered_and_deleted(tools: Tools) -> None:
    topic = unique_name()
    wanted = ("--create", "--topic", topic, "--partitions", "2", "--config", "retention.ms=999000")
    assert f"Created topic {topic}." in tools.run(TOPICS, *wanted)
    assert f"Topic '{topic}' already exists" in tools.run(TOPICS, *wanted, exit_code=1)
    tools.run(TOPICS, *wanted, "--if-not-exists")
    tools.run_until(topic, TOPICS, "--list")
    described = tools.run_until("PartitionCount: 2", TOPICS, "--describe", "--topic", topic)
    assert re.search(rf"Topic: {topic}\tTopicId: [\w-]{{22}}\tPartitionCount: 2\tReplicationFactor: 1\t", described)
    assert "retention.ms=999000" in described
    tools.run(TOPICS, "--alter", "--topic", topic, "--partitions", "4")
    described = tools.run_until("PartitionCount: 4", TOPICS, "--describe", "--topic", topic)
    leaders = re.findall(r"Partition: (\d)\tLeader: (\d+)\tReplicas: (\d+)\tIsr: (\d+)", described)
    assert [int(partition) for partition, *_ in leaders] == [0, 1, 2, 3]
    assert all(leader == replicas == isr for _, leader, replicas, isr in leaders)
    tools.run(TOPICS, "--delete", "--topic", topic)
    deadline = time.monotonic() + VISIBLE_S_MAX
    while topic in tools.run(TOPICS, "--list"):
        assert time.monotonic() < deadline, "the topic is still there"


def test_a_topic_is_described_by_its_id(tools: Tools, new_topic: NewTopic) -> None:
    topic = new_topic()
    described = tools.run_until(topic, TOPICS, "--describe", "--topic", topic)
    (topic_id,) = re.findall(r"TopicId: ([\w-]{22})", described)
    # Asked by id the tool uses an older request, which has no eligible leader replicas.
    assert described.splitlines()[0] in tools.run(TOPICS, "--describe", "--topic-id", topic_id)


def test_a_topics_configuration_is_changed(tools: Tools, new_topic: NewTopic) -> None:
    entity = ("--topic", new_topic(configs={"retention.ms": "999000"}))
    assert "retention.ms=999000 sensitive=false" in tools.run(CONFIGS, "--describe", *entity)
    tools.run(CONFIGS, "--alter", *entity, "--add-config", "retention.ms=5000,cleanup.policy=[compact,delete]")
    described = tools.run_until("retention.ms=5000", CONFIGS, "--describe", *entity)
    assert (
        "cleanup.policy=compact,delete sensitive=false "
        "synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, DEFAULT_CONFIG:log.cleanup.policy=delete}"
    ) in described
    tools.run(CONFIGS, "--alter", *entity, "--delete-config", "retention.ms")
    tools.run_until("retention.ms=604800000", CONFIGS, "--describe", "--all", *entity)
    assert "Invalid value" in tools_error(tools, "--alter", *entity, "--add-config", "retention.ms=never")


def tools_error(tools: Tools, *args: str) -> str:
    done = tools.host.ask({"class": CONFIGS, "args": [*args, "--bootstrap-server", tools.bootstrap], "stdin": ""})
    assert done["exit"] == 1
    return str(done["out"] + done["err"])


def test_the_configuration_of_one_broker_is_changed(tools: Tools, drivers: Drivers) -> None:
    entity = ("--broker", str(drivers["confluent"].describe_cluster()["controller"]))
    tools.run(CONFIGS, "--alter", *entity, "--add-config", "log.segment.delete.delay.ms=61000")
    tools.run_until(
        "log.segment.delete.delay.ms=61000 sensitive=false "
        "synonyms={DYNAMIC_BROKER_CONFIG:log.segment.delete.delay.ms=61000, "
        "DEFAULT_CONFIG:log.segment.delete.delay.ms=60000}",
        CONFIGS,
        "--describe",
        *entity,
    )
    tools.run(CONFIGS, "--alter", *entity, "--delete-config", "log.segment.delete.delay.ms")
    tools.run_until("log.segment.delete.delay.ms=60000", CONFIGS, "--describe", "--all", *entity)


def test_the_configuration_of_all_brokers_reaches_topics(tools: Tools, new_topic: NewTopic) -> None:
    topic = new_topic()
    tools.run(CONFIGS, "--alter", "--broker-defaults", "--add-config", "log.index.interval.bytes=5000")
    try:
        tools.run_until("log.index.interval.bytes=5000", CONFIGS, "--describe", "--broker-defaults")
        tools.run_until(
            "index.interval.bytes=5000 sensitive=false "
            "synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:log.index.interval.bytes=5000, "
            "DEFAULT_CONFIG:log.index.interval.bytes=4096}",
            CONFIGS,
            "--describe",
            "--all",
            "--topic",
            topic,
        )
    finally:
        tools.run(CONFIGS, "--alter", "--broker-defaults", "--delete-config", "log.index.interval.bytes")


def test_the_configuration_of_a_group_is_changed(tools: Tools, new_topic: NewTopic) -> None:
    name = new_topic()
    entity = ("--entity-type", "groups", "--entity-name", name)
    tools.run(CONFIGS, "--alter", *entity, "--add-config", "consumer.session.timeout.ms=50000")
    described = tools.run_until("consumer.session.timeout.ms=50000", CONFIGS, "--describe", *entity)
    assert "DEFAULT_CONFIG:group.consumer.session.timeout.ms=45000" in described
    assert f"group {name} are" in tools.run(CONFIGS, "--describe", "--entity-type", "groups")
    refused = tools_error(tools, "--alter", *entity, "--add-config", "consumer.session.timeout.ms=1")
    assert "must be greater than or equal to group.consumer.min.session.timeout.ms" in refused
    tools.run(CONFIGS, "--alter", *entity, "--delete-config", "consumer.session.timeout.ms")
    tools.run_until("consumer.session.timeout.ms=45000", CONFIGS, "--describe", "--all", *entity)


def test_what_the_console_producer_writes_the_console_consumer_reads(tools: Tools, new_topic: NewTopic) -> None:
    topic = new_topic()
    properties = ("parse.key=true", "parse.headers=true", "null.marker=NULL")
    reader = [part for each in properties for part in ("--reader-property", each)]
    lines = "trace:1\ta\tone\ntrace:2\tb\tNULL\ntrace:3\tc\tthree\n"
    tools.run(CONSOLE_PRODUCER, "--topic", topic, "--compression-codec", "zstd", *reader, stdin=lines)
    shown = ("print.key=true", "print.headers=true", "print.offset=true", "print.partition=true")
    formatter = [part for each in shown for part in ("--formatter-property", each)]
    position = ("--partition", "0", "--offset", "1", "--max-messages", "2", "--timeout-ms", "15000")
    printed = tools.run(CONSOLE_CONSUMER, "--topic", topic, *position, *formatter)
    assert printed.splitlines() == [
        "Partition:0\tOffset:1\ttrace:2\tb\tnull",
        "Partition:0\tOffset:2\ttrace:3\tc\tthree",
    ]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_record_of_the_performance_tool_arrives(tools: Tools, new_topic: NewTopic, acks: str) -> None:
    topic = new_topic(partitions=3)
    printed = tools.run(
        PERFORMANCE, "--topic", topic, "--num-records", "5000", "--record-size", "100", "--throughput", "-1",
        "--command-property", f"acks={acks}",
    )  # fmt: skip
    assert "5000 records sent" in printed
    deadline = time.monotonic() + VISIBLE_S_MAX
    while sum(offsets(tools, "--topic", topic).values()) != 5000:  # with acks=0 the last may still be on their way
        assert time.monotonic() < deadline, "records are missing"


def test_offsets_are_listed_by_name_and_by_time(tools: Tools, drivers: Drivers, new_topic: NewTopic) -> None:
    topic, first_ms = new_topic(partitions=2), int(time.time() * 1_000) - 3_600_000
    late_then_early = [Record(b"v", timestamp=first_ms + at_ms) for at_ms in (0, 10, 30, 20)]
    drivers["java"].produce(topic, late_then_early)
    assert offsets(tools, "--topic", topic) == {0: 4, 1: 0}
    assert offsets(tools, "--topic-partitions", f"{topic}:0", "--time", "earliest") == {0: 0}
    assert offsets(tools, "--topic-partitions", f"{topic}:0", "--time", "max-timestamp") == {0: 2}
    assert offsets(tools, "--topic-partitions", f"{topic}:0", "--time", str(first_ms + 5)) == {0: 1}


def offsets(tools: Tools, *args: str) -> dict[int, int]:
    lines = (line.split(":") for line in tools.run(GET_OFFSETS, *args).splitlines())
    return {int(partition): int(offset) for _, partition, offset in lines}


def test_records_are_deleted(tools: Tools, drivers: Drivers, new_topic: NewTopic, tmp_path: Path) -> None:
    topic = new_topic(partitions=2)
    drivers["java"].produce(topic, [Record(b"v", partition=number % 2) for number in range(10)])
    until = [{"topic": topic, "partition": 0, "offset": 3}, {"topic": topic, "partition": 1, "offset": -1}]
    (tmp_path / "until.json").write_text(json.dumps({"version": 1, "partitions": until}))
    printed = tools.run(DELETE_RECORDS, "--offset-json-file", str(tmp_path / "until.json"))
    assert f"partition: {topic}-0\tlow_watermark: 3" in printed
    assert f"partition: {topic}-1\tlow_watermark: 5" in printed
    assert offsets(tools, "--topic", topic, "--time", "earliest") == {0: 3, 1: 5}


def test_log_directories_tell_what_each_partition_takes(tools: Tools, drivers: Drivers, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=2)
    drivers["java"].produce(topic, [Record(b"v" * 1_000)])
    printed = tools.run(LOG_DIRS, "--describe", "--topic-list", topic)
    (broker,) = json.loads(printed.splitlines()[-1])["brokers"]
    (directory,) = broker["logDirs"]
    assert directory["error"] is None
    assert Path(directory["logDir"]).is_absolute()
    bytes_by_partition = {found["partition"]: found["size"] for found in directory["partitions"]}
    # The batch has 61 bytes of header and the record six of lengths, deltas and attributes beside its value.
    assert 1_061 < bytes_by_partition.pop(f"{topic}-0") < 1_080
    assert bytes_by_partition == {f"{topic}-1": 0}


def test_every_api_of_a_producer_reader_and_operator_is_usable(tools: Tools, bootstrap: str) -> None:
    printed = tools.run(API_VERSIONS)
    assert printed.startswith(bootstrap)
    usable = set(re.findall(r"(\w+)\(\d+\): .*\[usable: \d+\]", printed))
    assert usable >= NEEDED_APIS


def test_the_cluster_has_an_id(tools: Tools) -> None:
    assert re.search(r"Cluster ID: [\w-]{22}\n", tools.run(CLUSTER, "cluster-id"))
