"""Keys of logs, their retention, compaction and flushing: as Kafka 4.3 defines them, in its order."""

from __future__ import annotations

from moldau.core.config.definitions import (
    DOUBLE_MAX,
    LONG_MAX,
    ConfigDef,
    ConfigType,
    at_least,
    between,
    list_of,
    one_of,
)

BOOLEAN = ConfigType.BOOLEAN
STRING = ConfigType.STRING
INT = ConfigType.INT
LONG = ConfigType.LONG
DOUBLE = ConfigType.DOUBLE
LIST = ConfigType.LIST

STORAGE_KEYS = (
    ConfigDef("log.cleaner.threads", INT, 1, at_least(0)),
    ConfigDef(
        "log.cleaner.io.max.bytes.per.second",
        DOUBLE,
        DOUBLE_MAX,
        None,
        "How many bytes a second compaction may read and write.",
    ),
    ConfigDef(
        "log.cleaner.dedupe.buffer.size",
        LONG,
        134_217_728,
        None,
        "How much memory compaction may use for its map of keys.",
    ),
    ConfigDef("log.cleaner.io.buffer.size", INT, 524_288, at_least(0)),
    ConfigDef("log.cleaner.io.buffer.load.factor", DOUBLE, 0.9),
    ConfigDef(
        "log.cleaner.backoff.ms", LONG, 15_000, at_least(0), "How long compaction sleeps when there is nothing to do."
    ),
    ConfigDef(
        "log.cleaner.min.cleanable.ratio",
        DOUBLE,
        0.5,
        between(0, 1),
        "The share of a log that must be uncompacted before it is compacted again.",
    ),
    ConfigDef("log.cleaner.enable", BOOLEAN, True, None, "Whether topics with cleanup.policy compact are compacted."),
    ConfigDef(
        "log.cleaner.delete.retention.ms",
        LONG,
        86_400_000,
        at_least(0),
        "How long a compacted topic keeps tombstones for readers that start from the beginning.",
    ),
    ConfigDef(
        "log.cleaner.min.compaction.lag.ms",
        LONG,
        0,
        at_least(0),
        "A record is not compacted away before it has this age.",
    ),
    ConfigDef(
        "log.cleaner.max.compaction.lag.ms",
        LONG,
        LONG_MAX,
        at_least(1),
        "A record becomes eligible for compaction at this age at the latest.",
    ),
    ConfigDef("log.dir", LIST, ("./moldau-data",), list_of(), "The log directory when log.dirs is not given."),
    ConfigDef(
        "log.dirs",
        LIST,
        None,
        list_of(),
        "The log directories, comma-separated; a new partition goes to the one that holds fewest.",
    ),
    ConfigDef("cordoned.log.dirs", LIST, (), list_of(may_be_empty=True)),
    ConfigDef(
        "log.segment.bytes",
        INT,
        1_073_741_824,
        at_least(1_048_576),
        "A segment file is closed and a new one begun before it grows beyond this many bytes.",
    ),
    ConfigDef(
        "log.roll.ms", LONG, None, None, "A segment that is not full is closed after this time; before log.roll.hours."
    ),
    ConfigDef("log.roll.hours", INT, 168, at_least(1), "A segment that is not full is closed after this time."),
    ConfigDef(
        "log.roll.jitter.ms",
        LONG,
        None,
        None,
        "Up to this much is taken off log.roll.ms at random; before log.roll.jitter.hours.",
    ),
    ConfigDef("log.roll.jitter.hours", INT, 0, at_least(0), "Up to this much is taken off log.roll.ms at random."),
    ConfigDef(
        "log.retention.ms",
        LONG,
        None,
        None,
        "How long segments are kept; before log.retention.minutes and log.retention.hours; -1 keeps them for ever.",
    ),
    ConfigDef("log.retention.minutes", INT, None, None, "How long segments are kept; before log.retention.hours."),
    ConfigDef("log.retention.hours", INT, 168, None, "How long segments are kept."),
    ConfigDef(
        "log.retention.bytes",
        LONG,
        -1,
        None,
        "Old segments go when a partition is larger than this; -1 sets no bound by size.",
    ),
    ConfigDef("log.retention.check.interval.ms", LONG, 300_000, at_least(1), "How often old segments are looked for."),
    ConfigDef(
        "log.cleanup.policy",
        LIST,
        ("delete",),
        list_of("compact", "delete", may_be_empty=True),
        "What becomes of old segments: delete drops them, compact keeps each key's last record.",
    ),
    ConfigDef(
        "log.index.size.max.bytes",
        INT,
        10_485_760,
        at_least(4),
        "The size at which an offset or time index is full and its segment rolls.",
    ),
    ConfigDef(
        "log.index.interval.bytes",
        INT,
        4096,
        at_least(0),
        "How many bytes of records lie between two entries of the offset index.",
    ),
    ConfigDef(
        "log.flush.interval.messages",
        LONG,
        LONG_MAX,
        at_least(1),
        "After this many records a log is forced to disk; 1 makes every write wait for the disk.",
    ),
    ConfigDef(
        "log.segment.delete.delay.ms",
        LONG,
        60_000,
        at_least(0),
        "How long a deleted file stays on disk under another name before it is removed.",
    ),
    ConfigDef(
        "log.flush.scheduler.interval.ms",
        LONG,
        LONG_MAX,
        None,
        "How often it is checked whether a log must be forced to disk.",
    ),
    ConfigDef(
        "log.flush.interval.ms",
        LONG,
        None,
        None,
        "The longest time that written records stay unforced in the page cache.",
    ),
    ConfigDef(
        "log.flush.offset.checkpoint.interval.ms",
        INT,
        60_000,
        at_least(0),
        "How often recovery points are written to disk.",
    ),
    ConfigDef(
        "log.flush.start.offset.checkpoint.interval.ms",
        INT,
        60_000,
        at_least(0),
        "How often log start offsets are written to disk.",
    ),
    ConfigDef("log.preallocate", BOOLEAN, False),
    ConfigDef(
        "num.recovery.threads.per.data.dir",
        INT,
        2,
        at_least(1),
        "How many logs of a log directory are recovered side by side at start.",
    ),
    ConfigDef(
        "log.message.timestamp.type",
        STRING,
        "CreateTime",
        one_of("CreateTime", "LogAppendTime"),
        "Whether a record carries the time of its creation or of its append.",
    ),
    ConfigDef(
        "log.message.timestamp.before.max.ms",
        LONG,
        LONG_MAX,
        at_least(0),
        "How far a record's CreateTime may lie behind the broker's clock.",
    ),
    ConfigDef(
        "log.message.timestamp.after.max.ms",
        LONG,
        3_600_000,
        at_least(0),
        "How far a record's CreateTime may lie ahead of the broker's clock.",
    ),
    ConfigDef("log.dir.failure.timeout.ms", LONG, 30_000, at_least(1)),
    ConfigDef("log.initial.task.delay.ms", LONG, 30_000, at_least(0), internal=True),
    ConfigDef(
        "producer.id.expiration.ms", INT, 86_400_000, at_least(1), "How long an idle idempotent producer is remembered."
    ),
    ConfigDef(
        "producer.id.expiration.check.interval.ms",
        INT,
        600_000,
        at_least(1),
        "How often idle producers are looked for.",
        internal=True,
    ),
)
