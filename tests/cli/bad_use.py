"""For each tool of `moldau help`, how it asks a cluster: about a topic that is not there, where nobody listens, and
where it may do nothing; and which of its input has to be text. A tool without one of these says why."""

from __future__ import annotations

from dataclasses import dataclass

NOPE = "no-such-topic"
BYTES = "BYTES"  # in a line: a file of bytes that are no text
PLAN, ELECTION, DELETION, SECRET, QUICK = "PLAN", "ELECTION", "DELETION", "SECRET", "QUICK"  # files, too


@dataclass(frozen=True, slots=True)
class Without:
    why: str


@dataclass(frozen=True, slots=True)
class BadUse:
    unknown: str | Without
    """Of a topic that there is not, or of whatever the tool names instead."""
    asking: str | Without
    refused: str | Without
    garbled: str | Without


NO_CLUSTER = Without("asks no cluster")
NO_TOPIC = Without("names no topic, and nothing else of a cluster that may be missing")
NO_TEXT = Without("reads nothing that has to be text but its arguments")
LISTS = Without("what may not be seen is not listed")
FINDS = Without("tells what it may not see among its findings")
SERVES = Without("a service: whoever asks it hears what its cluster says")
IN_TABLE = Without("says so in its table, with exit code 1")
SPARK = Without("asks by Spark, whose start takes seconds: tests/cli/sql and tests/cli/pipeline")

# What fails is told on standard output, in the words and at the place of Apache Kafka's tool.
ON_OUTPUT = {"consumer-groups", "streams-application-reset", "delete-records", "verifiable-producer"}
DONE_ALL_THE_SAME = {"verifiable-producer"}  # whose events tell which records were refused; exit code 0, as there

TOOLS: dict[str, BadUse] = {
    "topics": BadUse(f"describe {NOPE}", "list", "create denied", NO_TEXT),
    "produce": BadUse(NOPE, "orders", "orders", f"orders -i json --file {BYTES}"),
    "consume": BadUse(NOPE, "orders", "orders", NO_TEXT),
    "groups": BadUse("describe no-such-group", "list", "describe billing", NO_TEXT),
    "profile": BadUse(NO_CLUSTER, NO_CLUSTER, NO_CLUSTER, f"set staging --command-config {BYTES}"),
    "completion": BadUse(NO_CLUSTER, Without("completes nothing where nobody listens"), LISTS, NO_TEXT),
    "monitor": BadUse(NO_TOPIC, "--once", LISTS, f"--once --config {BYTES}"),
    "up": BadUse(NO_CLUSTER, NO_CLUSTER, NO_CLUSTER, NO_TEXT),
    "registry": BadUse(NO_TOPIC, "--port 0", SERVES, f"--port 0 --config {BYTES}"),
    "rest": BadUse(NO_TOPIC, SERVES, SERVES, f"--port 0 --config {BYTES}"),
    "dashboards": BadUse(NO_CLUSTER, NO_CLUSTER, NO_CLUSTER, NO_TEXT),
    "doctor": BadUse(NO_TOPIC, "--cluster", FINDS, NO_TEXT),
    "plan": BadUse(NO_CLUSTER, NO_CLUSTER, NO_CLUSTER, NO_TEXT),
    "retention": BadUse(IN_TABLE, "billing", IN_TABLE, f"--pipeline {BYTES}"),
    "verify": BadUse(NO_TOPIC, "leader-election --yes", Without("tells what failed as it goes"), NO_TEXT),
    "zookeeper-config": BadUse(NO_CLUSTER, NO_CLUSTER, NO_CLUSTER, NO_TEXT),
    "metadata-move": BadUse(NO_CLUSTER, NO_CLUSTER, NO_CLUSTER, NO_TEXT),
    "certs": BadUse(NO_CLUSTER, NO_CLUSTER, NO_CLUSTER, f"show {BYTES}"),
    "users": BadUse("delete nobody", "list", f"add eve --password-file {SECRET}", f"add eve --password-file {BYTES}"),
    "acls": BadUse(NO_TOPIC, "list", "add --principal eve --topic orders --operation read", NO_TEXT),
    "quotas": BadUse(NO_TOPIC, "list", "set user=eve producer_byte_rate=1MiB", NO_TEXT),
    "pipeline": BadUse(SPARK, SPARK, SPARK, f"check {BYTES}"),
    "sql": BadUse(SPARK, SPARK, SPARK, NO_TEXT),
    "tables": BadUse(NO_CLUSTER, NO_CLUSTER, NO_CLUSTER, NO_TEXT),
    "dead-letters": BadUse(f"list {NOPE}", "list orders", "list orders", NO_TEXT),
    "consumer-groups": BadUse(
        "--describe --group no-such-group", "--list", "--delete-offsets --group billing --topic orders",
        f"--reset-offsets --group billing --topic orders --from-file {BYTES} --dry-run",
    ),
    "streams-application-reset": BadUse(
        f"--application-id billing --input-topics {NOPE}", "--application-id billing",
        "--application-id billing --input-topics orders", NO_TEXT,
    ),
    "shell-scripts": BadUse(NO_CLUSTER, NO_CLUSTER, NO_CLUSTER, NO_TEXT),
    "reassign-partitions": BadUse(
        f"--execute --reassignment-json-file {PLAN}", "--list", "--list",
        f"--execute --reassignment-json-file {BYTES}",
    ),
    "leader-election": BadUse(
        f"--election-type preferred --topic {NOPE} --partition 0", "--election-type preferred --all-topic-partitions",
        "--election-type preferred --all-topic-partitions", f"--election-type preferred --path-to-json-file {BYTES}",
    ),
    "log-dirs": BadUse(NO_TOPIC, "--describe", "--describe", NO_TEXT),
    "broker-api-versions": BadUse(NO_TOPIC, "", Without("anybody may ask for versions"), NO_TEXT),
    "cluster": BadUse(NO_TOPIC, "cluster-id", "unregister --id 7", NO_TEXT),
    "features": BadUse(NO_TOPIC, "describe", "upgrade --feature group.version=1", NO_TEXT),
    "metadata-quorum": BadUse(NO_TOPIC, "describe --status", "describe --status", NO_TEXT),
    "transactions": BadUse(
        f"describe-producers --topic {NOPE} --partition 0", "list",
        "abort --topic orders --partition 0 --start-offset 0", NO_TEXT,
    ),
    "replica-verification": BadUse(Without("topics are a pattern, which none may fit"), "", LISTS, NO_TEXT),
    "delegation-tokens": BadUse(
        NO_TOPIC, "--describe", "--create --max-life-time-period -1", NO_TEXT,
    ),
    "client-metrics": BadUse(NO_TOPIC, "--list", "--alter --name eve --metrics * --interval 1000", NO_TEXT),
    "configs": BadUse(
        f"--alter --topic {NOPE} --add-config retention.ms=1", "--describe --topic orders",
        "--alter --topic orders --add-config retention.ms=1",
        f"--alter --topic orders --add-config-file {BYTES}",
    ),
    "delete-records": BadUse(
        f"--offset-json-file {DELETION}", f"--offset-json-file {DELETION}", f"--offset-json-file {DELETION}",
        f"--offset-json-file {BYTES}",
    ),
    "get-offsets": BadUse(f"--topic {NOPE}", "", "--topic orders", NO_TEXT),
    "console-producer": BadUse(
        f"--topic {NOPE}", "--topic orders", "--topic orders", f"--topic orders --reader-config {BYTES}"
    ),
    "console-consumer": BadUse(
        Without("waits for the topic, as Apache Kafka's does"), "--topic orders", "--topic orders",
        f"--topic orders --formatter-config {BYTES}",
    ),
    "dump-log": BadUse(NO_CLUSTER, NO_CLUSTER, NO_CLUSTER, Without("reads logs, which are no text")),
    "verifiable-producer": BadUse(
        f"--topic {NOPE} --max-messages 1 --command-config {QUICK}",
        "--topic orders --max-messages 1", "--topic orders --max-messages 1",
        f"--topic orders --command-config {BYTES}",
    ),
    "verifiable-consumer": BadUse(
        Without("waits for the topic, as Apache Kafka's does"), "--topic orders --group-id billing",
        "--topic orders --group-id billing --max-messages 1", f"--topic orders --group-id b --command-config {BYTES}",
    ),
    "producer-perf": BadUse(
        f"--topic {NOPE} --num-records 1 --record-size 1 --throughput -1",
        "--topic orders --num-records 1 --record-size 1 --throughput -1",
        "--topic orders --num-records 1 --record-size 1 --throughput -1",
        f"--topic orders --num-records 1 --throughput -1 --record-size 1 --command-config {BYTES}",
    ),
    "consumer-perf": BadUse(
        f"--topic {NOPE} --num-records 1", "--topic orders --num-records 1", "--topic orders --num-records 1",
        f"--topic orders --num-records 1 --command-config {BYTES}",
    ),
    "e2e-latency": BadUse(
        Without("makes the topic, as Apache Kafka's does"),
        "--topic orders --num-records 1 --producer-acks all --record-size 1",
        "--topic orders --num-records 1 --producer-acks all --record-size 1",
        f"--topic orders --num-records 1 --producer-acks all --record-size 1 --command-config {BYTES}",
    ),
}  # fmt: skip
