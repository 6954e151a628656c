"""Keys of replication: as Kafka 4.3 defines them, in its order."""

from __future__ import annotations

from moldau.core.config.definitions import ConfigDef, ConfigType, at_least, one_of

BOOLEAN = ConfigType.BOOLEAN
STRING = ConfigType.STRING
INT = ConfigType.INT
LONG = ConfigType.LONG

REPLICATION_KEYS = (
    ConfigDef("num.replica.alter.log.dirs.threads", INT, None),
    ConfigDef("initial.broker.registration.timeout.ms", INT, 60_000),
    ConfigDef("broker.heartbeat.interval.ms", INT, 2000),
    ConfigDef("broker.session.timeout.ms", INT, 9000),
    ConfigDef("default.replication.factor", INT, 1, None, "How many replicas a topic gets that asks for the default."),
    ConfigDef("replica.lag.time.max.ms", LONG, 30_000),
    ConfigDef("replica.socket.timeout.ms", INT, 30_000),
    ConfigDef("replica.socket.receive.buffer.bytes", INT, 65_536),
    ConfigDef("replica.fetch.max.bytes", INT, 1_048_576, at_least(0)),
    ConfigDef("replica.fetch.wait.max.ms", INT, 500),
    ConfigDef("replica.fetch.backoff.ms", INT, 1000, at_least(0)),
    ConfigDef("replica.fetch.min.bytes", INT, 1),
    ConfigDef("replica.fetch.response.max.bytes", INT, 10_485_760, at_least(0)),
    ConfigDef("num.replica.fetchers", INT, 1, at_least(1)),
    ConfigDef("replica.high.watermark.checkpoint.interval.ms", LONG, 5000),
    ConfigDef("fetch.purgatory.purge.interval.requests", INT, 1000),
    ConfigDef("producer.purgatory.purge.interval.requests", INT, 1000),
    ConfigDef("delete.records.purgatory.purge.interval.requests", INT, 1),
    ConfigDef("auto.leader.rebalance.enable", BOOLEAN, True),
    ConfigDef("leader.imbalance.check.interval.seconds", LONG, 300, at_least(1)),
    ConfigDef("unclean.leader.election.interval.ms", LONG, 300_000, at_least(1), internal=True),
    ConfigDef("unclean.leader.election.enable", BOOLEAN, False),
    ConfigDef(
        "security.inter.broker.protocol", STRING, "PLAINTEXT", one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
    ),
    ConfigDef("inter.broker.listener.name", STRING, None, None, "The listener that brokers use among themselves."),
    ConfigDef("replica.selector.class", STRING, None),
    ConfigDef("follower.fetch.last.tiered.offset.enable", BOOLEAN, False),
    ConfigDef("min.insync.replicas", INT, 1, at_least(1)),
)
