"""Which tools there are. A name of Apache Kafka's scripts takes their options; our own tools begin with an action."""

from __future__ import annotations

from collections.abc import Sequence


class Tool:
    """`kafka` is the module for Apache Kafka's options, `module` the one for everything else; one may be all.

    What it prints on a terminal has control characters of its own if it `draws`, and else is to have none.
    """

    __slots__ = ("draws", "kafka", "module", "reads_input", "summary")

    def __init__(
        self,
        summary: str,
        module: str | None = None,
        *,
        kafka: str | None = None,
        reads_input: bool = False,
        draws: bool = False,
    ) -> None:
        self.summary = summary
        self.module = module
        self.kafka = kafka
        self.reads_input = reads_input
        self.draws = draws


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
        kafka="moldau.cli.kafka.commands.groups",
    ),
    "profile": Tool("name clusters, and say which one is meant", "moldau.cli.profile_command"),
    "completion": Tool("complete command lines in bash, zsh and fish", "moldau.cli.completion.command"),
}
CLUSTER = {
    "monitor": Tool("watch the lag of consumer groups, as Burrow does and in seconds", "moldau.cli.monitor.command"),
    "dashboards": Tool("write dashboards for Grafana and alert rules for Prometheus", "moldau.cli.dashboards.command"),
    "up": Tool("a broker, a schema registry and a REST proxy together", "moldau.cli.up.command"),
    "registry": Tool("a schema registry with the API of Confluent's", "moldau.cli.registry.command"),
    "rest": Tool("topics, records and groups over HTTP, as Confluent's REST proxy", "moldau.cli.rest.command"),
    "doctor": Tool("check this machine and a cluster, and say what to do", "moldau.cli.doctor.command", draws=True),
    "plan": Tool("partitions, brokers and disks for a wanted load", "moldau.cli.plan.command"),
    "retention": Tool("readers that retention may pass: warn, and hold it", "moldau.cli.retention.command"),
    "verify": Tool("kill, restart and slow brokers and clients under load: what holds", "moldau.cli.verify.command"),
    "zookeeper-config": Tool("files for a ZooKeeper ensemble, and a look at one", "moldau.cli.zookeeper_config"),
    "metadata-move": Tool("move a machine's metadata into ZooKeeper or etcd", "moldau.cli.metadata_move.command"),
}
SECURITY = {
    "certs": Tool("make, show and renew certificates for TLS", "moldau.cli.certs.command"),
    "users": Tool("users who log in with SCRAM, and their passwords", "moldau.cli.users.command"),
    "acls": Tool("say who may do what", "moldau.cli.acls.command", kafka="moldau.cli.kafka.acls.command"),
    "quotas": Tool("limit what users, client ids and addresses may use", "moldau.cli.quotas.command"),
}
SPARK = {
    "pipeline": Tool("run, check and watch data pipelines on Spark", "moldau.cli.pipeline.command", draws=True),
    "sql": Tool("ask topics in SQL, on Spark", "moldau.cli.sql.command", draws=True),
    "tables": Tool("describe, optimize and vacuum the tables that queries write to", "moldau.cli.tables"),
    "dead-letters": Tool("records that a query refused: look at them, send them back", "moldau.cli.dead_letters"),
}
KAFKA: dict[str, Tool] = {
    "consumer-groups": Tool(
        "list, describe, reset and delete consumer groups", kafka="moldau.cli.kafka.consumer_groups.command"
    ),
    "streams-application-reset": Tool(
        "let a Kafka Streams application begin anew", kafka="moldau.cli.kafka.commands.streams_application_reset"
    ),
    "shell-scripts": Tool("write scripts with the names of Apache Kafka's", "moldau.cli.shell_scripts"),
    "reassign-partitions": Tool("give partitions other replicas", kafka="moldau.cli.kafka.reassignment.command"),
    "leader-election": Tool("have other replicas lead partitions", kafka="moldau.cli.kafka.commands.leader_election"),
    "log-dirs": Tool("what replicas take in log directories", kafka="moldau.cli.kafka.commands.log_dirs"),
    "broker-api-versions": Tool("APIs that brokers answer", kafka="moldau.cli.kafka.commands.broker_api_versions"),
    "cluster": Tool("the cluster's id and endpoints; forget a broker", kafka="moldau.cli.kafka.commands.cluster"),
    "features": Tool("features of a cluster, and their levels", kafka="moldau.cli.kafka.commands.features"),
    "metadata-quorum": Tool("who keeps the cluster's metadata", kafka="moldau.cli.kafka.commands.metadata_quorum"),
    "transactions": Tool("open and hanging transactions", kafka="moldau.cli.kafka.transactions.command"),
    "replica-verification": Tool(
        "whether replicas have the same", kafka="moldau.cli.kafka.replica_verification.command"
    ),
    "delegation-tokens": Tool("tokens that log in for users", kafka="moldau.cli.kafka.commands.delegation_tokens"),
    "configs": Tool("describe and alter configurations", kafka="moldau.cli.kafka.configs.command"),
    "client-metrics": Tool("which of their own metrics clients push", kafka="moldau.cli.kafka.commands.client_metrics"),
    "delete-records": Tool(
        "delete records below offsets that a file names", kafka="moldau.cli.kafka.commands.delete_records"
    ),
    "get-offsets": Tool("offsets of partitions at a time", kafka="moldau.cli.kafka.commands.get_offsets"),
    "console-producer": Tool(
        "send what is typed, as kafka-console-producer does",
        kafka="moldau.cli.kafka.commands.console_producer",
        reads_input=True,
    ),
    "console-consumer": Tool(
        "print records, as kafka-console-consumer does", kafka="moldau.cli.kafka.commands.console_consumer"
    ),
    "dump-log": Tool("what is in the files of a log directory", kafka="moldau.cli.kafka.dump_log.command"),
    "verifiable-producer": Tool(
        "send numbers, and say which were acknowledged", kafka="moldau.cli.kafka.commands.verifiable_producer"
    ),
    "verifiable-consumer": Tool(
        "read in a group, and say what was read and committed", kafka="moldau.cli.kafka.commands.verifiable_consumer"
    ),
    "producer-perf": Tool("how fast a cluster takes records", kafka="moldau.cli.kafka.commands.producer_perf"),
    "consumer-perf": Tool("how fast a cluster gives records", kafka="moldau.cli.kafka.commands.consumer_perf"),
    "e2e-latency": Tool(
        "how long a record takes from a producer to a consumer", kafka="moldau.cli.kafka.commands.e2e_latency"
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

# Scripts of Apache Kafka that have no counterpart here, and what there is instead.
_SHARE = "share groups have no tools here, and our brokers have none of them; `moldau groups --list` shows another's"
_CONNECT = "Kafka Connect runs unchanged on our brokers, by its own scripts; our pipelines are `moldau pipeline`"
_MIRROR = "mirroring is planned; MirrorMaker's own scripts run unchanged between our brokers"
ABSENT = {
    "share-groups": _SHARE,
    "console-share-consumer": _SHARE,
    "share-consumer-perf-test": _SHARE,
    "verifiable-share-consumer": _SHARE,
    "streams-groups": "streams groups have no tools here, and our brokers have none of them; `moldau groups --list`"
    " shows another's, and the classic groups of Kafka Streams are in `moldau consumer-groups`",
    "server-start": "a broker is started by `moldau start`",
    "server-stop": "Ctrl-C or SIGTERM stops a broker",
    "storage": "there is nothing to format: `moldau start` makes what a log directory needs",
    "metadata-shell": "our metadata is in SQLite, ZooKeeper or etcd; `moldau metadata-quorum` tells of a quorum",
    "jmx": "there is no JMX; `moldau start --metrics PORT` serves what it would tell",
    "mirror-maker": _MIRROR,
    "connect-mirror-maker": _MIRROR,
    "connect-standalone": _CONNECT,
    "connect-distributed": _CONNECT,
    "connect-plugin-path": _CONNECT,
    "trogdor": "load is made by `moldau producer-perf` and `consumer-perf`, trouble by `moldau verify`",
}

# What says where the cluster is may also stand before the tool, or before its action.
LEADING = ("-b", "--bootstrap-server", "--profile", "--command-config", "-X", "--timeout")
HELP = ("-h", "--help")

# Scripts of Apache Kafka whose names say more than ours.
ALIASES = {"producer-perf-test": "producer-perf", "consumer-perf-test": "consumer-perf"}


def tool_name(word: str) -> str:
    """`kafka-topics.sh` is `topics`: a script works by a change of the name, or a link of that name."""
    name = word.removesuffix(".sh").removeprefix("kafka-")
    return ALIASES.get(name, name)


def module_of(name: str, words: Sequence[str], *, is_script: bool = False) -> str:
    """By a script's name its options are meant, be it that none is given or that they are asked for."""
    tool = TOOLS[name]
    first = words[0] if words else ""
    speaks_kafka = first.startswith("--") and first not in HELP
    if is_script:
        speaks_kafka = not first or first.startswith("-")
    module = tool.kafka if tool.kafka and (speaks_kafka or tool.module is None) else tool.module
    assert module is not None, "every tool has a module"
    return module
