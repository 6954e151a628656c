"""Keys of the service that holds the cluster's metadata: ZooKeeper's as Kafka 3.9 defines them, and etcd's.

No Kafka of today has them, so DescribeConfigs does not list them.
"""

from __future__ import annotations

from moldau.core.config.definitions import ConfigDef, ConfigType, at_least

STRING = ConfigType.STRING
INT = ConfigType.INT

METADATA_STORE_KEYS = (
    ConfigDef(
        "zookeeper.connect",
        STRING,
        None,
        doc="The ZooKeeper servers that hold the cluster's metadata: host:port[,host:port...][/chroot].",
    ),
    ConfigDef(
        "zookeeper.session.timeout.ms",
        INT,
        18_000,
        at_least(1),
        "After how long ZooKeeper takes a silent broker for dead.",
    ),
    ConfigDef(
        "zookeeper.connection.timeout.ms",
        INT,
        None,
        at_least(1),
        "How long a start tries to reach ZooKeeper; as long as a session, if it is not set.",
    ),
    ConfigDef(
        "etcd.connect",
        STRING,
        None,
        doc="The etcd servers that hold the cluster's metadata: host:port[,host:port...][/prefix].",
    ),
)
