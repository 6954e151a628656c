"""Keys of Kafka's controllers (KRaft) and their metadata log: as Kafka 4.3 defines them, in its order."""

from __future__ import annotations

from moldau.core.config.definitions import LONG_MAX, ConfigDef, ConfigType, at_least, list_of

BOOLEAN = ConfigType.BOOLEAN
STRING = ConfigType.STRING
INT = ConfigType.INT
LONG = ConfigType.LONG
LIST = ConfigType.LIST

KRAFT_KEYS = (
    ConfigDef("unstable.api.versions.enable", BOOLEAN, False, internal=True),
    ConfigDef("unstable.feature.versions.enable", BOOLEAN, False, internal=True),
    ConfigDef(
        "process.roles",
        LIST,
        None,
        list_of("broker", "controller"),
        "broker,controller is the one choice: the broker is its own controller.",
    ),
    ConfigDef(
        "controller.listener.names",
        LIST,
        None,
        list_of(),
        "Listeners for controllers alone; they are not opened, for there is no quorum to talk to.",
    ),
    ConfigDef("sasl.mechanism.controller.protocol", STRING, "GSSAPI"),
    ConfigDef("controller.performance.sample.period.ms", LONG, 60_000, at_least(100), internal=True),
    ConfigDef("controller.performance.always.log.threshold.ms", LONG, 2000, at_least(0), internal=True),
    ConfigDef("server.max.startup.time.ms", LONG, LONG_MAX, at_least(0), internal=True),
    ConfigDef("metadata.log.max.record.bytes.between.snapshots", LONG, 20_971_520, at_least(1)),
    ConfigDef("metadata.log.max.snapshot.interval.ms", LONG, 3_600_000, at_least(0)),
    ConfigDef("metadata.log.dir", STRING, None),
    ConfigDef("metadata.log.segment.bytes", INT, 1_073_741_824, at_least(8_388_608)),
    ConfigDef("metadata.log.segment.ms", LONG, 604_800_000),
    ConfigDef("metadata.max.retention.bytes", LONG, 104_857_600),
    ConfigDef("metadata.max.retention.ms", LONG, 604_800_000),
    ConfigDef("metadata.max.idle.interval.ms", INT, 500, at_least(0)),
    ConfigDef("internal.metadata.log.segment.bytes", INT, None, internal=True),
    ConfigDef("internal.metadata.max.batch.size.in.bytes", INT, 8_388_608, internal=True),
    ConfigDef("internal.metadata.delete.delay.millis", LONG, 60_000, internal=True),
)
