"""Keys of the members of share groups and streams groups: as Kafka 4.3 defines them, in its order."""

from __future__ import annotations

from moldau.core.config.definitions import INT_MAX, ConfigDef, ConfigType, at_least, between, list_of

INT = ConfigType.INT
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
    ConfigDef("group.share.initialize.retry.interval.ms", INT, 30_000, at_least(1), internal=True),
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
)
