"""Keys of share groups and streams groups: names, defaults and rules as Kafka 4.3 has them."""

from __future__ import annotations

from moldau.core.config.definitions import INT_MAX, ConfigDef, ConfigType, at_least, between, list_of

INT = ConfigType.INT
SHORT = ConfigType.SHORT
LIST = ConfigType.LIST

SHARE_AND_STREAMS_KEYS = (
    ConfigDef("group.share.session.timeout.ms", INT, 45_000, at_least(1)),
    ConfigDef("group.share.min.session.timeout.ms", INT, 45_000, at_least(1)),
    ConfigDef("group.share.max.session.timeout.ms", INT, 60_000, at_least(1)),
    ConfigDef("group.share.heartbeat.interval.ms", INT, 5000, at_least(1)),
    ConfigDef("group.share.min.heartbeat.interval.ms", INT, 5000, at_least(1)),
    ConfigDef("group.share.max.heartbeat.interval.ms", INT, 15_000, at_least(1)),
    ConfigDef("group.share.max.size", INT, 200, between(1, 1000)),
    ConfigDef("group.share.assignors", LIST, ("simple",), list_of()),
    ConfigDef("group.share.assignment.interval.ms", INT, 1000, at_least(0)),
    ConfigDef("group.share.min.assignment.interval.ms", INT, 0, at_least(0)),
    ConfigDef("group.share.max.assignment.interval.ms", INT, 15_000, at_least(0)),
    ConfigDef("group.streams.session.timeout.ms", INT, 45_000, at_least(1)),
    ConfigDef("group.streams.min.session.timeout.ms", INT, 45_000, at_least(1)),
    ConfigDef("group.streams.max.session.timeout.ms", INT, 60_000, at_least(1)),
    ConfigDef("group.streams.heartbeat.interval.ms", INT, 5000, at_least(1)),
    ConfigDef("group.streams.min.heartbeat.interval.ms", INT, 5000, at_least(1)),
    ConfigDef("group.streams.max.heartbeat.interval.ms", INT, 15_000, at_least(1)),
    ConfigDef("group.streams.max.size", INT, INT_MAX, at_least(1)),
    ConfigDef("group.streams.num.standby.replicas", INT, 0, at_least(0)),
    ConfigDef("group.streams.max.standby.replicas", INT, 2, at_least(0)),
    ConfigDef("group.streams.initial.rebalance.delay.ms", INT, 3000, at_least(0)),
    ConfigDef("group.streams.assignment.interval.ms", INT, 1000, at_least(0)),
    ConfigDef("group.streams.min.assignment.interval.ms", INT, 0, at_least(0)),
    ConfigDef("group.streams.max.assignment.interval.ms", INT, 15_000, at_least(0)),
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
    ConfigDef("share.coordinator.cached.buffer.max.bytes", INT, 1_048_588, at_least(524_288)),
)
