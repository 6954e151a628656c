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
    "topics": Tool("list, create, describe and delete topics", "moldau.cli.topics.command"),
    "produce": Tool("send the lines of standard input to a topic", "moldau.cli.records.produce", reads_input=True),
    "consume": Tool("print the records of a topic", "moldau.cli.records.consume"),
    "profile": Tool("name clusters, and say which one is meant", "moldau.cli.profile_command"),
}
CLUSTER = {
    "retention": Tool("readers that retention may pass: warn, and hold it", "moldau.cli.retention"),
    "zookeeper-config": Tool("files for a ZooKeeper ensemble, and a look at one", "moldau.cli.zookeeper_config"),
    "metadata-move": Tool("move a machine's metadata into ZooKeeper or etcd", "moldau.cli.metadata_move"),
}
SECURITY = {
    "certs": Tool("make, show and renew certificates for TLS", "moldau.cli.certs.command"),
    "users": Tool("users who log in with SCRAM, and their passwords", "moldau.cli.users.command"),
    "acls": Tool("say who may do what", "moldau.cli.acls.command"),
    "quotas": Tool("limit what users, client ids and addresses may use", "moldau.cli.quotas.command"),
}
SPARK = {
    "pipeline": Tool("run, check and watch data pipelines on Spark", "moldau.cli.pipeline.command"),
    "sql": Tool("ask topics in SQL, on Spark", "moldau.cli.sql.command"),
    "tables": Tool("describe, optimize and vacuum the tables that queries write to", "moldau.cli.tables"),
    "dead-letters": Tool("records that a query refused: look at them, send them back", "moldau.cli.dead_letters"),
}
KAFKA: dict[str, Tool] = {
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
