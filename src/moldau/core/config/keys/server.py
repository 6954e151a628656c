"""Keys of the broker as a whole: names, defaults and rules as Kafka 4.3 has them."""

from __future__ import annotations

from moldau.core.config.definitions import ConfigDef, ConfigType, at_least

BOOLEAN = ConfigType.BOOLEAN
STRING = ConfigType.STRING
INT = ConfigType.INT
LONG = ConfigType.LONG

SERVER_KEYS = (
    ConfigDef("broker.id", INT, -1, None, "The older name of node.id."),
    ConfigDef(
        "message.max.bytes",
        INT,
        1_048_588,
        at_least(0),
        "The largest record batch that is accepted, after compression, unless the topic says otherwise.",
    ),
    ConfigDef("num.io.threads", INT, 8, at_least(1), "Accepted for Kafka's sake; one event loop serves a broker here."),
    ConfigDef(
        "background.threads",
        INT,
        10,
        at_least(1),
        "Accepted for Kafka's sake; background work has a small pool of its own here.",
    ),
    ConfigDef("request.timeout.ms", INT, 30_000, None, "How long a broker waits for another's answer."),
    ConfigDef("broker.rack", STRING, None, None, "Where this broker stands, so that replicas can be spread."),
    ConfigDef(
        "controlled.shutdown.enable", BOOLEAN, True, None, "Whether leadership is handed over before a broker stops."
    ),
    ConfigDef("delete.topic.enable", BOOLEAN, True, None, "Whether topics can be deleted."),
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
    ConfigDef("metrics.num.samples", INT, 2, at_least(1)),
    ConfigDef("metrics.sample.window.ms", LONG, 30_000, at_least(1)),
    ConfigDef("metrics.recording.level", STRING, "INFO"),
    ConfigDef("quota.window.num", INT, 11, at_least(1)),
    ConfigDef("controller.quota.window.num", INT, 11, at_least(1)),
    ConfigDef("quota.window.size.seconds", INT, 1, at_least(1)),
    ConfigDef("controller.quota.window.size.seconds", INT, 1, at_least(1)),
)
