"""Keys of the records and the coordinator of share groups: as Kafka 4.3 defines them, in its order."""

from __future__ import annotations

from moldau.core.config.definitions import ConfigDef, ConfigType, at_least, between

STRING = ConfigType.STRING
INT = ConfigType.INT
SHORT = ConfigType.SHORT

SHARE_KEYS = (
    ConfigDef("group.share.delivery.count.limit", INT, 5, between(2, 10)),
    ConfigDef("group.share.max.delivery.count.limit", INT, 10, between(5, 25)),
    ConfigDef("group.share.min.delivery.count.limit", INT, 2, between(2, 5)),
    ConfigDef("group.share.record.lock.duration.ms", INT, 30_000, between(1000, 3_600_000)),
    ConfigDef("group.share.min.record.lock.duration.ms", INT, 15_000, between(1000, 30_000)),
    ConfigDef("group.share.max.record.lock.duration.ms", INT, 60_000, between(30_000, 3_600_000)),
    ConfigDef("group.share.partition.max.record.locks", INT, 2000, between(100, 10_000)),
    ConfigDef("group.share.max.partition.max.record.locks", INT, 4000, between(2000, 10_000)),
    ConfigDef("group.share.min.partition.max.record.locks", INT, 100, between(100, 2000)),
    ConfigDef("share.fetch.purgatory.purge.interval.requests", INT, 1000),
    ConfigDef("group.share.max.share.sessions", INT, 2000, at_least(1)),
    ConfigDef(
        "group.share.persister.class.name",
        STRING,
        "org.apache.kafka.server.share.persister.DefaultStatePersister",
        internal=True,
    ),
    ConfigDef("share.coordinator.state.topic.num.partitions", INT, 50, at_least(1)),
    ConfigDef("share.coordinator.state.topic.replication.factor", SHORT, 3, at_least(1)),
    ConfigDef("share.coordinator.state.topic.min.isr", SHORT, 2, at_least(1)),
    ConfigDef("share.coordinator.state.topic.segment.bytes", INT, 104_857_600, at_least(1)),
    ConfigDef("share.coordinator.threads", INT, 1, at_least(1)),
    ConfigDef("share.coordinator.snapshot.update.records.per.snapshot", INT, 500, between(0, 500)),
    ConfigDef("share.coordinator.load.buffer.size", INT, 5_242_880, at_least(1)),
    ConfigDef("share.coordinator.state.topic.compression.codec", INT, 0),
    ConfigDef("share.coordinator.append.linger.ms", INT, -1, at_least(-1)),
    ConfigDef("share.coordinator.write.timeout.ms", INT, 5000, at_least(1)),
    ConfigDef("share.coordinator.state.topic.prune.interval.ms", INT, 300_000, at_least(1), internal=True),
    ConfigDef("share.coordinator.cold.partition.snapshot.interval.ms", INT, 300_000, at_least(1), internal=True),
    ConfigDef("share.coordinator.cached.buffer.max.bytes", INT, 1_048_588, at_least(524_288)),
)
