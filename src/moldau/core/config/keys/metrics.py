"""Keys of metrics and quotas: as Kafka 4.3 defines them, in its order."""

from __future__ import annotations

from moldau.core.config.definitions import ConfigDef, ConfigType, at_least, list_of

STRING = ConfigType.STRING
INT = ConfigType.INT
LONG = ConfigType.LONG
LIST = ConfigType.LIST
CLASS = ConfigType.CLASS

METRICS_KEYS = (
    ConfigDef("metrics.num.samples", INT, 2, at_least(1)),
    ConfigDef("metrics.sample.window.ms", LONG, 30_000, at_least(1)),
    ConfigDef("metric.reporters", LIST, ("org.apache.kafka.common.metrics.JmxReporter",), list_of(may_be_empty=True)),
    ConfigDef("metrics.recording.level", STRING, "INFO"),
    ConfigDef("kafka.metrics.reporters", LIST, (), list_of(may_be_empty=True)),
    ConfigDef("kafka.metrics.polling.interval.secs", INT, 10, at_least(1)),
    ConfigDef(
        "telemetry.max.bytes",
        INT,
        1_048_576,
        at_least(1),
        "The longest push of a client's own metrics, compressed and uncompressed.",
    ),
    ConfigDef(
        "quota.window.num", INT, 11, at_least(1), "How many windows rates of clients and connections are averaged over."
    ),
    ConfigDef("replication.quota.window.num", INT, 11, at_least(1), "Samples of a replication throttle's rate."),
    ConfigDef(
        "alter.log.dirs.replication.quota.window.num",
        INT,
        11,
        at_least(1),
        "Samples of the rate at which replicas move between log directories.",
    ),
    ConfigDef(
        "controller.quota.window.num",
        INT,
        11,
        at_least(1),
        "How many windows of creating and deleting partitions a client may use up at once.",
    ),
    ConfigDef(
        "quota.window.size.seconds",
        INT,
        1,
        at_least(1),
        "The length of a window that rates of clients and connections are averaged over.",
    ),
    ConfigDef("replication.quota.window.size.seconds", INT, 1, at_least(1), "How long each of these samples is."),
    ConfigDef(
        "alter.log.dirs.replication.quota.window.size.seconds",
        INT,
        1,
        at_least(1),
        "How long each of these samples is.",
    ),
    ConfigDef("controller.quota.window.size.seconds", INT, 1, at_least(1), "How long each of these windows is."),
    ConfigDef("client.quota.callback.class", CLASS, None),
)
