"""Keys of replication: names, defaults and rules as Kafka 4.3 has them."""

from __future__ import annotations

from moldau.core.config.definitions import ConfigDef, ConfigType, at_least

BOOLEAN = ConfigType.BOOLEAN
INT = ConfigType.INT
LONG = ConfigType.LONG

REPLICATION_KEYS = (
    ConfigDef("num.replica.alter.log.dirs.threads", INT, None),
    ConfigDef("initial.broker.registration.timeout.ms", INT, 60_000),
    ConfigDef("broker.heartbeat.interval.ms", INT, 2000, None, "How often a broker tells the store that it is alive."),
    ConfigDef(
        "broker.session.timeout.ms", INT, 9000, None, "A broker that is silent for this long is considered gone."
    ),
    ConfigDef("default.replication.factor", INT, 1, None, "How many replicas a topic gets that asks for the default."),
    ConfigDef(
        "replica.lag.time.max.ms",
        LONG,
        30_000,
        None,
        "A follower that has not caught up for this long leaves the in-sync set.",
    ),
    ConfigDef("replica.socket.timeout.ms", INT, 30_000),
    ConfigDef("replica.socket.receive.buffer.bytes", INT, 65_536),
    ConfigDef(
        "replica.fetch.max.bytes",
        INT,
        1_048_576,
        at_least(0),
        "How many bytes of one partition a follower asks for at a time.",
    ),
    ConfigDef("replica.fetch.wait.max.ms", INT, 500, None, "How long a follower's fetch may wait for records."),
    ConfigDef("replica.fetch.backoff.ms", INT, 1000, at_least(0)),
    ConfigDef("replica.fetch.min.bytes", INT, 1, None, "How many bytes a follower's fetch waits for."),
    ConfigDef("replica.fetch.response.max.bytes", INT, 10_485_760, at_least(0)),
    ConfigDef("num.replica.fetchers", INT, 1, at_least(1), "How many fetchers copy from each leader."),
    ConfigDef(
        "replica.high.watermark.checkpoint.interval.ms",
        LONG,
        5000,
        None,
        "How often high watermarks are written to disk.",
    ),
    ConfigDef("fetch.purgatory.purge.interval.requests", INT, 1000),
    ConfigDef("producer.purgatory.purge.interval.requests", INT, 1000),
    ConfigDef("delete.records.purgatory.purge.interval.requests", INT, 1),
    ConfigDef(
        "auto.leader.rebalance.enable",
        BOOLEAN,
        True,
        None,
        "Whether leadership returns to the preferred replica by itself.",
    ),
    ConfigDef("leader.imbalance.check.interval.seconds", LONG, 300, at_least(1)),
    ConfigDef(
        "unclean.leader.election.enable",
        BOOLEAN,
        False,
        None,
        "Whether a replica that is not in sync may lead if none else can.",
    ),
    ConfigDef(
        "min.insync.replicas",
        INT,
        1,
        at_least(1),
        "How many replicas must hold a record before a write with acks=all is acknowledged.",
    ),
    ConfigDef("replication.quota.window.num", INT, 11, at_least(1)),
    ConfigDef("alter.log.dirs.replication.quota.window.num", INT, 11, at_least(1)),
    ConfigDef("replication.quota.window.size.seconds", INT, 1, at_least(1)),
    ConfigDef("alter.log.dirs.replication.quota.window.size.seconds", INT, 1, at_least(1)),
)
