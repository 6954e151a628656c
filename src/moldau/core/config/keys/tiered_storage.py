"""Keys of tiered storage: as Kafka 4.3 defines them, in its order."""

from __future__ import annotations

from moldau.core.config.definitions import LONG_MAX, ConfigDef, ConfigType, at_least, between, not_empty

BOOLEAN = ConfigType.BOOLEAN
STRING = ConfigType.STRING
INT = ConfigType.INT
LONG = ConfigType.LONG
DOUBLE = ConfigType.DOUBLE

TIERED_STORAGE_KEYS = (
    ConfigDef("remote.log.storage.system.enable", BOOLEAN, False),
    ConfigDef("remote.log.storage.manager.impl.prefix", STRING, "rsm.config.", not_empty),
    ConfigDef("remote.log.metadata.manager.impl.prefix", STRING, "rlmm.config.", not_empty),
    ConfigDef("remote.log.storage.manager.class.name", STRING, None, not_empty),
    ConfigDef("remote.log.storage.manager.class.path", STRING, None),
    ConfigDef(
        "remote.log.metadata.manager.class.name",
        STRING,
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
        not_empty,
    ),
    ConfigDef("remote.log.metadata.manager.class.path", STRING, None),
    ConfigDef("remote.log.metadata.manager.listener.name", STRING, None, not_empty),
    ConfigDef("remote.log.metadata.custom.metadata.max.bytes", INT, 128, at_least(0)),
    ConfigDef("remote.log.index.file.cache.total.size.bytes", LONG, 1_073_741_824, at_least(1)),
    ConfigDef("remote.log.index.file.cache.ttl.ms", LONG, 900_000, at_least(-1), internal=True),
    ConfigDef("remote.log.manager.thread.pool.size", INT, 2, at_least(1)),
    ConfigDef("remote.log.manager.copier.thread.pool.size", INT, 10, at_least(1)),
    ConfigDef("remote.log.manager.expiration.thread.pool.size", INT, 10, at_least(1)),
    ConfigDef("remote.log.manager.follower.thread.pool.size", INT, 2, at_least(1)),
    ConfigDef("remote.log.manager.task.interval.ms", LONG, 30_000, at_least(1)),
    ConfigDef("remote.log.manager.task.retry.backoff.ms", LONG, 500, at_least(1), internal=True),
    ConfigDef("remote.log.manager.task.retry.backoff.max.ms", LONG, 30_000, at_least(1), internal=True),
    ConfigDef("remote.log.manager.task.retry.jitter", DOUBLE, 0.2, between(0, 0.5), internal=True),
    ConfigDef("remote.log.reader.threads", INT, 10, at_least(1)),
    ConfigDef("remote.log.reader.max.pending.tasks", INT, 100, at_least(1)),
    ConfigDef("log.local.retention.ms", LONG, -2, at_least(-2)),
    ConfigDef("log.local.retention.bytes", LONG, -2, at_least(-2)),
    ConfigDef("remote.log.manager.copy.max.bytes.per.second", LONG, LONG_MAX, at_least(1)),
    ConfigDef("remote.log.manager.copy.quota.window.num", INT, 11, at_least(1)),
    ConfigDef("remote.log.manager.copy.quota.window.size.seconds", INT, 1, at_least(1)),
    ConfigDef("remote.log.manager.fetch.max.bytes.per.second", LONG, LONG_MAX, at_least(1)),
    ConfigDef("remote.log.manager.fetch.quota.window.num", INT, 11, at_least(1)),
    ConfigDef("remote.log.manager.fetch.quota.window.size.seconds", INT, 1, at_least(1)),
    ConfigDef("remote.fetch.max.wait.ms", INT, 500, at_least(1)),
    ConfigDef("remote.list.offsets.request.timeout.ms", LONG, 30_000, at_least(1)),
)
