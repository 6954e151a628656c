"""Keys of the broker as a whole: as Kafka 4.3 defines them, in its order."""

from __future__ import annotations

from moldau.core.config.definitions import ConfigDef, ConfigType, at_least, between, gzip_level, list_of, one_of

BOOLEAN = ConfigType.BOOLEAN
STRING = ConfigType.STRING
INT = ConfigType.INT
LIST = ConfigType.LIST
CLASS = ConfigType.CLASS

SERVER_KEYS = (
    ConfigDef("broker.id", INT, -1, None, "The older name of node.id."),
    ConfigDef(
        "message.max.bytes",
        INT,
        1_048_588,
        at_least(0),
        "The largest record batch that is accepted, after compression, unless the topic says otherwise.",
    ),
    ConfigDef("num.io.threads", INT, 8, at_least(1)),
    ConfigDef("background.threads", INT, 10, at_least(1)),
    ConfigDef("request.timeout.ms", INT, 30_000, None, "How long this broker waits for the answer of another one."),
    ConfigDef("config.providers", LIST, (), list_of(may_be_empty=True)),
    ConfigDef("authorizer.class.name", STRING, ""),
    ConfigDef("early.start.listeners", LIST, None, list_of(may_be_empty=True)),
    ConfigDef("broker.rack", STRING, None, None, "Where this broker stands, so that replicas can be spread."),
    ConfigDef(
        "controlled.shutdown.enable", BOOLEAN, True, None, "Whether others lead what a broker leads before it stops."
    ),
    ConfigDef("delete.topic.enable", BOOLEAN, True, None, "Whether topics can be deleted."),
    ConfigDef(
        "compression.type",
        STRING,
        "producer",
        one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        "The codec that logs are kept in; producer keeps what the producer chose.",
    ),
    ConfigDef("compression.gzip.level", INT, -1, gzip_level, "The level used when compression.type is gzip."),
    ConfigDef("compression.lz4.level", INT, 9, between(1, 17), "The level used when compression.type is lz4."),
    ConfigDef("compression.zstd.level", INT, 3, between(-131_072, 22), "The level used when compression.type is zstd."),
    ConfigDef(
        "max.incremental.fetch.session.cache.slots", INT, 1000, at_least(0), "How many fetch sessions are remembered."
    ),
    ConfigDef(
        "fetch.max.bytes",
        INT,
        57_671_680,
        at_least(1024),
        "The most bytes that one fetch is answered with, whatever it asks for.",
    ),
    ConfigDef(
        "max.request.partition.size.limit",
        INT,
        2000,
        at_least(1),
        "How many partitions one DescribeTopicPartitions answer may hold.",
    ),
    ConfigDef("node.id", INT, 0, at_least(0), "The number by which this broker is known in its cluster."),
    ConfigDef("num.partitions", INT, 1, at_least(1), "How many partitions a topic gets that asks for the default."),
    ConfigDef(
        "auto.create.topics.enable",
        BOOLEAN,
        True,
        None,
        "Whether asking for the metadata of an unknown topic may create it.",
    ),
    ConfigDef("create.topic.policy.class.name", CLASS, None),
    ConfigDef("alter.config.policy.class.name", CLASS, None),
)
