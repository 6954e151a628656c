"""Keys of consumer groups and committed offsets: as Kafka 4.3 defines them, in its order."""

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
        "The group protocols that are offered: classic, and consumer unless it is left out.",
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
    ConfigDef(
        "group.consumer.session.timeout.ms",
        INT,
        45_000,
        at_least(1),
        "How long a member of the consumer protocol may be silent before it is taken for dead.",
    ),
    ConfigDef(
        "group.consumer.min.session.timeout.ms", INT, 45_000, at_least(1), "The shortest session time-out of a group."
    ),
    ConfigDef(
        "group.consumer.max.session.timeout.ms", INT, 60_000, at_least(1), "The longest session time-out of a group."
    ),
    ConfigDef(
        "group.consumer.heartbeat.interval.ms",
        INT,
        5000,
        at_least(1),
        "How often members of the consumer protocol are asked to send a heartbeat.",
    ),
    ConfigDef(
        "group.consumer.min.heartbeat.interval.ms",
        INT,
        5000,
        at_least(1),
        "The shortest heartbeat interval of a group.",
    ),
    ConfigDef(
        "group.consumer.max.heartbeat.interval.ms",
        INT,
        15_000,
        at_least(1),
        "The longest heartbeat interval of a group.",
    ),
    ConfigDef(
        "group.consumer.max.size",
        INT,
        INT_MAX,
        at_least(1),
        "How many members a group of the consumer protocol may have.",
    ),
    ConfigDef(
        "group.consumer.assignors",
        LIST,
        ("uniform", "range"),
        list_of(),
        "The assignors that members may ask for; the first is for those that ask for none.",
    ),
    ConfigDef(
        "group.consumer.migration.policy",
        STRING,
        "bidirectional",
        one_of_any_case("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"),
        "Whether a group goes from the classic to the consumer protocol, and back, while its members are there.",
    ),
    ConfigDef(
        "group.consumer.assignment.interval.ms",
        INT,
        1000,
        at_least(0),
        "The least time between two assignments of a group of the consumer protocol.",
    ),
    ConfigDef(
        "group.consumer.min.assignment.interval.ms",
        INT,
        0,
        at_least(0),
        "The least that a group may set as the time between assignments.",
    ),
    ConfigDef(
        "group.consumer.max.assignment.interval.ms",
        INT,
        15_000,
        at_least(0),
        "The most that a group may set as the time between assignments.",
    ),
    ConfigDef(
        "group.consumer.regex.refresh.interval.ms",
        INT,
        600_000,
        at_least(10_000),
        "How often topics are looked for that match the patterns members subscribed to.",
        internal=True,
    ),
)
