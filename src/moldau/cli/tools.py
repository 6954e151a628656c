"""Which tools there are. A name of Apache Kafka's scripts takes their options; our own tools begin with an action."""

from __future__ import annotations

from typing import NamedTuple


class Tool(NamedTuple):
    """`kafka` is the module for Apache Kafka's options, `module` the one for everything else; one may be all."""

    summary: str
    module: str | None = None
    kafka: str | None = None
    reads_input: bool = False


DAILY = {
    "topics": Tool(
        "list, create, describe, alter, trim and delete topics",
        "moldau.cli.topics.command",
        kafka="moldau.cli.kafka.topics.command",
    ),
    "produce": Tool("send the lines of standard input to a topic", "moldau.cli.records.produce", reads_input=True),
    "consume": Tool("print the records of a topic", "moldau.cli.records.consume"),
    "groups": Tool(
        "groups of consumers: how far behind they are, and where they read on",
        "moldau.cli.groups.command",
        kafka="moldau.cli.kafka.groups",
    ),
    "profile": Tool("name clusters, and say which one is meant", "moldau.cli.profile_command"),
}
CLUSTER = {
    "monitor": Tool("watch the lag of consumer groups, as Burrow does and in seconds", "moldau.cli.monitor"),
    "retention": Tool("readers that retention may pass: warn, and hold it", "moldau.cli.retention"),
    "zookeeper-config": Tool("files for a ZooKeeper ensemble, and a look at one", "moldau.cli.zookeeper_config"),
    "metadata-move": Tool("move a machine's metadata into ZooKeeper or etcd", "moldau.cli.metadata_move"),
}
SECURITY = {
    "certs": Tool("make, show and renew certificates for TLS", "moldau.cli.certs.command"),
    "users": Tool("users who log in with SCRAM, and their passwords", "moldau.cli.users.command"),
    "acls": Tool("say who may do what", "moldau.cli.acls.command", kafka="moldau.cli.kafka.acls.command"),
    "quotas": Tool("limit what users, client ids and addresses may use", "moldau.cli.quotas.command"),
}
SPARK = {
    "pipeline": Tool("run, check and watch data pipelines on Spark", "moldau.cli.pipeline.command"),
    "sql": Tool("ask topics in SQL, on Spark", "moldau.cli.sql.command"),
    "tables": Tool("describe, optimize and vacuum the tables that queries write to", "moldau.cli.tables"),
    "dead-letters": Tool("records that a query refused: look at them, send them back", "moldau.cli.dead_letters"),
}
KAFKA: dict[str, Tool] = {
    "consumer-groups": Tool(
        "list, describe, reset and delete consumer groups", kafka="moldau.cli.kafka.consumer_groups.command"
    ),
    "streams-application-reset": Tool(
        "let a Kafka Streams application begin anew", kafka="moldau.cli.kafka.streams_application_reset"
    ),
    "shell-scripts": Tool("write scripts with the names of Apache Kafka's", "moldau.cli.shell_scripts"),
    "reassign-partitions": Tool("give partitions other replicas", kafka="moldau.cli.kafka.reassignment.command"),
    "leader-election": Tool("have other replicas lead partitions", kafka="moldau.cli.kafka.leader_election"),
    "log-dirs": Tool("what replicas take in log directories", kafka="moldau.cli.kafka.log_dirs"),
    "broker-api-versions": Tool("APIs that brokers answer", kafka="moldau.cli.kafka.broker_api_versions"),
    "cluster": Tool("the cluster's id and endpoints; forget a broker", kafka="moldau.cli.kafka.cluster"),
    "features": Tool("features of a cluster, and their levels", kafka="moldau.cli.kafka.features"),
    "metadata-quorum": Tool("who keeps the cluster's metadata", kafka="moldau.cli.kafka.metadata_quorum"),
    "transactions": Tool("open and hanging transactions", kafka="moldau.cli.kafka.transactions.command"),
    "replica-verification": Tool(
        "whether replicas have the same", kafka="moldau.cli.kafka.replica_verification.command"
    ),
    "delegation-tokens": Tool("tokens that log in for users", kafka="moldau.cli.kafka.delegation_tokens"),
    "configs": Tool("describe and alter configurations", kafka="moldau.cli.kafka.configs.command"),
    "delete-records": Tool("delete records below offsets that a file names", kafka="moldau.cli.kafka.delete_records"),
    "get-offsets": Tool("offsets of partitions at a time", kafka="moldau.cli.kafka.get_offsets"),
    "console-producer": Tool(
        "send what is typed, as kafka-console-producer does",
        kafka="moldau.cli.kafka.console.producer",
        reads_input=True,
    ),
    "console-consumer": Tool(
        "print records, as kafka-console-consumer does", kafka="moldau.cli.kafka.console.consumer"
    ),
    "dump-log": Tool("what is in the files of a log directory", kafka="moldau.cli.kafka.dump_log.command"),
    "verifiable-producer": Tool(
        "send numbers, and say which were acknowledged", kafka="moldau.cli.kafka.verifiable.producer"
    ),
    "verifiable-consumer": Tool(
        "read in a group, and say what was read and committed", kafka="moldau.cli.kafka.verifiable.consumer"
    ),
    "producer-perf": Tool("how fast a cluster takes records", kafka="moldau.cli.kafka.performance.producing"),
    "consumer-perf": Tool("how fast a cluster gives records", kafka="moldau.cli.kafka.performance.consuming"),
    "e2e-latency": Tool(
        "how long a record takes from a producer to a consumer", kafka="moldau.cli.kafka.performance.end_to_end"
    ),
}
GROUPS = {
    "daily": DAILY,
    "the cluster": CLUSTER,
    "security": SECURITY,
    "pipelines on Spark": SPARK,
    "Apache Kafka's tools, with their options": KAFKA,
}
TOOLS = {name: tool for group in GROUPS.values() for name, tool in group.items()}

# Scripts of Apache Kafka whose names say more than ours.
ALIASES = {"producer-perf-test": "producer-perf", "consumer-perf-test": "consumer-perf"}


def tool_name(word: str) -> str:
    """`kafka-topics.sh` is `topics`: a script works by a change of the name, or a link of that name."""
    name = word.removesuffix(".sh").removeprefix("kafka-")
    return ALIASES.get(name, name)
