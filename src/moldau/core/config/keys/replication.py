"""Keys of replication: as Kafka 4.3 defines them, in its order."""

from __future__ import annotations

from moldau.core.config.definitions import ConfigDef, ConfigType, at_least, one_of

BOOLEAN = ConfigType.BOOLEAN
STRING = ConfigType.STRING
INT = ConfigType.INT
LONG = ConfigType.LONG

REPLICATION_KEYS = (
    ConfigDef("num.replica.alter.log.dirs.threads", INT, None),
    ConfigDef("initial.broker.registration.timeout.ms", INT, 60_000, None, "How long a start tries to reach etcd."),
    ConfigDef("broker.heartbeat.interval.ms", INT, 2000, None, "How often a broker of one machine says that it lives."),
    ConfigDef(
        "broker.session.timeout.ms",
        INT,
        9000,
        None,
        "After how long a silent broker is taken for dead, on one machine and in etcd; in ZooKeeper see there.",
    ),
    ConfigDef("default.replication.factor", INT, 1, None, "How many replicas a topic gets that asks for the default."),
    ConfigDef("replica.lag.time.max.ms", LONG, 30_000, None, "How long a follower in sync may lack something."),
    ConfigDef("replica.socket.timeout.ms", INT, 30_000, None, "How long a follower waits for an answer."),
    ConfigDef("replica.socket.receive.buffer.bytes", INT, 65_536),
    ConfigDef(
        "replica.fetch.max.bytes", INT, 1_048_576, at_least(0), "What a follower takes of a partition at a time."
    ),
    ConfigDef("replica.fetch.wait.max.ms", INT, 500, None, "How long a follower's fetch waits for records."),
    ConfigDef("replica.fetch.backoff.ms", INT, 1000, at_least(0), "How long a follower waits after an error."),
    ConfigDef("replica.fetch.min.bytes", INT, 1, None, "What a follower's fetch waits for."),
    ConfigDef(
        "replica.fetch.response.max.bytes", INT, 10_485_760, at_least(0), "What a follower takes at a time from all."
    ),
    ConfigDef("num.replica.fetchers", INT, 1, at_least(1), "Connections for replication from each other broker."),
    ConfigDef(
        "replica.high.watermark.checkpoint.interval.ms", LONG, 5000, None, "How often high watermarks are written down."
    ),
    ConfigDef("fetch.purgatory.purge.interval.requests", INT, 1000),
    ConfigDef("producer.purgatory.purge.interval.requests", INT, 1000),
    ConfigDef("delete.records.purgatory.purge.interval.requests", INT, 1),
    ConfigDef(
        "auto.leader.rebalance.enable",
        BOOLEAN,
        True,
        doc="Whether the controller elects preferred replicas that are in sync again by itself.",
    ),
    ConfigDef(
        "leader.imbalance.check.interval.seconds",
        LONG,
        300,
        at_least(1),
        doc="How often the controller looks for partitions that their preferred replica does not lead.",
    ),
    ConfigDef(
        "unclean.leader.election.interval.ms",
        LONG,
        300_000,
        at_least(1),
        internal=True,
        doc="How often the controller looks for partitions without a leader whose topics allow an unclean election.",
    ),
    ConfigDef(
        "unclean.leader.election.enable",
        BOOLEAN,
        False,
        doc="Whether a replica that is not in sync may lead if none else can; a topic may set its own.",
    ),
    ConfigDef(
        "security.inter.broker.protocol",
        STRING,
        "PLAINTEXT",
        one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        "The listener of this name is what brokers use among themselves, unless inter.broker.listener.name says which.",
    ),
    ConfigDef("inter.broker.listener.name", STRING, None, None, "The listener that brokers use among themselves."),
    ConfigDef("replica.selector.class", STRING, None),
    ConfigDef("follower.fetch.last.tiered.offset.enable", BOOLEAN, False),
    ConfigDef(
        "min.insync.replicas",
        INT,
        1,
        at_least(1),
        doc="How many replicas must hold a record before acks=all acknowledges it; a topic may set its own.",
    ),
)

# What is set while brokers run, for a reassignment, and nowhere else: a start does not know these keys.
THROTTLE_KEYS = tuple(
    ConfigDef(name, LONG, None, at_least(0))
    for name in (
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
)
