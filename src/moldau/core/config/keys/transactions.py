"""Keys of transactions: as Kafka 4.3 defines them, in its order."""

from __future__ import annotations

from moldau.core.config.definitions import ConfigDef, ConfigType, at_least

BOOLEAN = ConfigType.BOOLEAN
INT = ConfigType.INT
SHORT = ConfigType.SHORT

TRANSACTIONS_KEYS = (
    ConfigDef(
        "transaction.state.log.min.isr", INT, 2, at_least(1), "min.insync.replicas of the topic of transaction states."
    ),
    ConfigDef("transaction.state.log.load.buffer.size", INT, 5_242_880, at_least(1)),
    ConfigDef(
        "transaction.state.log.replication.factor",
        SHORT,
        3,
        at_least(1),
        "How many replicas the topic of transaction states has.",
    ),
    ConfigDef(
        "transaction.state.log.num.partitions",
        INT,
        50,
        at_least(1),
        "How many partitions the topic of transaction states has.",
    ),
    ConfigDef(
        "transaction.state.log.segment.bytes",
        INT,
        104_857_600,
        at_least(1),
        "The segment size of the topic of transaction states.",
    ),
    ConfigDef(
        "transaction.partition.verification.enable",
        BOOLEAN,
        True,
        None,
        "Whether a producer's first write to a partition is checked with its transaction's coordinator.",
    ),
    ConfigDef(
        "transactional.id.expiration.ms",
        INT,
        604_800_000,
        at_least(1),
        "How long an idle transactional id is remembered.",
    ),
    ConfigDef(
        "transaction.max.timeout.ms", INT, 900_000, at_least(1), "The longest time-out that a transaction may ask for."
    ),
    ConfigDef("transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, 10_000, at_least(1)),
    ConfigDef(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        3_600_000,
        at_least(1),
        "How often expired transactional ids are looked for.",
    ),
    ConfigDef(
        "transaction.two.phase.commit.enable",
        BOOLEAN,
        False,
        None,
        "Whether a producer may keep a transaction open without a time-out, for a two-phase commit.",
    ),
    ConfigDef("add.partitions.to.txn.retry.backoff.max.ms", INT, 100, at_least(0)),
    ConfigDef("add.partitions.to.txn.retry.backoff.ms", INT, 20, at_least(1)),
)
