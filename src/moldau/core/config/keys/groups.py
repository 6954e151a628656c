"""Keys of consumer groups and committed offsets: names, defaults and rules as Kafka 4.3 has them."""

from __future__ import annotations

from moldau.core.config.definitions import INT_MAX, ConfigDef, ConfigType, at_least, list_of, one_of_any_case

STRING = ConfigType.STRING
INT = ConfigType.INT
SHORT = ConfigType.SHORT
LONG = ConfigType.LONG
LIST = ConfigType.LIST

GROUPS_KEYS = (
    ConfigDef(
        "group.coordinator.rebalance.protocols",
        LIST,
        ("classic", "consumer", "streams"),
        list_of("consumer", "classic", "share", "streams"),
    ),
    ConfigDef("group.coordinator.threads", INT, 4, at_least(1)),
    ConfigDef("group.coordinator.background.threads", INT, 2, at_least(1)),
    ConfigDef("group.coordinator.append.linger.ms", INT, -1, at_least(-1)),
    ConfigDef("offsets.commit.timeout.ms", INT, 5000, at_least(1)),
    ConfigDef("offsets.load.buffer.size", INT, 5_242_880, at_least(1)),
    ConfigDef(
        "offsets.topic.replication.factor",
        SHORT,
        3,
        at_least(1),
        "How many replicas the topic of committed offsets has.",
    ),
    ConfigDef(
        "offsets.topic.num.partitions", INT, 50, at_least(1), "How many partitions the topic of committed offsets has."
    ),
    ConfigDef(
        "offsets.topic.segment.bytes",
        INT,
        104_857_600,
        at_least(1),
        "The segment size of the topic of committed offsets.",
    ),
    ConfigDef("offsets.topic.compression.codec", INT, 0),
    ConfigDef("group.coordinator.cached.buffer.max.bytes", INT, 1_048_588, at_least(524_288)),
    ConfigDef(
        "offset.metadata.max.bytes", INT, 4096, None, "The longest note that may be stored with a committed offset."
    ),
    ConfigDef(
        "offsets.retention.minutes", INT, 10_080, at_least(1), "How long the offsets of an empty group are kept."
    ),
    ConfigDef(
        "offsets.retention.check.interval.ms", LONG, 600_000, at_least(1), "How often expired offsets are looked for."
    ),
    ConfigDef(
        "group.min.session.timeout.ms", INT, 6000, None, "The shortest session time-out that a member may ask for."
    ),
    ConfigDef(
        "group.max.session.timeout.ms", INT, 1_800_000, None, "The longest session time-out that a member may ask for."
    ),
    ConfigDef(
        "group.initial.rebalance.delay.ms",
        INT,
        3000,
        None,
        "How long a new group waits for more members before its first assignment.",
    ),
    ConfigDef("group.max.size", INT, INT_MAX, at_least(1), "How many members a group may have."),
    ConfigDef("group.consumer.session.timeout.ms", INT, 45_000, at_least(1)),
    ConfigDef("group.consumer.min.session.timeout.ms", INT, 45_000, at_least(1)),
    ConfigDef("group.consumer.max.session.timeout.ms", INT, 60_000, at_least(1)),
    ConfigDef("group.consumer.heartbeat.interval.ms", INT, 5000, at_least(1)),
    ConfigDef("group.consumer.min.heartbeat.interval.ms", INT, 5000, at_least(1)),
    ConfigDef("group.consumer.max.heartbeat.interval.ms", INT, 15_000, at_least(1)),
    ConfigDef("group.consumer.max.size", INT, INT_MAX, at_least(1)),
    ConfigDef("group.consumer.assignors", LIST, ("uniform", "range"), list_of()),
    ConfigDef(
        "group.consumer.migration.policy",
        STRING,
        "bidirectional",
        one_of_any_case("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"),
    ),
    ConfigDef("group.consumer.assignment.interval.ms", INT, 1000, at_least(0)),
    ConfigDef("group.consumer.min.assignment.interval.ms", INT, 0, at_least(0)),
    ConfigDef("group.consumer.max.assignment.interval.ms", INT, 15_000, at_least(0)),
)
