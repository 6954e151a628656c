"""Keys of the service that holds the cluster's metadata: ZooKeeper's as Kafka 3.9 defines them, and etcd's.

No Kafka of today has them, so DescribeConfigs does not list them.
"""

from __future__ import annotations

from moldau.core.config.definitions import ConfigDef, ConfigType, at_least

STRING = ConfigType.STRING
INT = ConfigType.INT
BOOLEAN = ConfigType.BOOLEAN
LIST = ConfigType.LIST
PASSWORD = ConfigType.PASSWORD


def _tls_keys(service: str, name: str) -> tuple[ConfigDef, ...]:
    """ZooKeeper's as Kafka 3.9 has them, and the same for etcd."""
    store = "PEM or PKCS12; without it, what the name of the file says (.pem, .p12, .pfx)."
    return (
        ConfigDef(f"{service}.ssl.client.enable", BOOLEAN, False, doc=f"Whether connections to {name} are TLS."),
        ConfigDef(f"{service}.ssl.keystore.location", STRING, None, doc=f"This broker's certificate for {name}."),
        ConfigDef(f"{service}.ssl.keystore.password", PASSWORD, None, doc="Of a PKCS12 store."),
        ConfigDef(f"{service}.ssl.keystore.type", STRING, None, doc=store),
        ConfigDef(f"{service}.ssl.truststore.location", STRING, None, doc=f"The authorities of {name}'s servers."),
        ConfigDef(f"{service}.ssl.truststore.password", PASSWORD, None, doc="Of a PKCS12 store."),
        ConfigDef(f"{service}.ssl.truststore.type", STRING, None, doc=store),
        ConfigDef(f"{service}.ssl.enabled.protocols", LIST, None, doc="TLSv1.2, TLSv1.3 or both."),
        ConfigDef(f"{service}.ssl.cipher.suites", LIST, None, doc="The cipher suites that may be negotiated."),
        ConfigDef(
            f"{service}.ssl.endpoint.identification.algorithm",
            STRING,
            "HTTPS",
            doc="Whether a server's certificate must be for its host: HTTPS, or nothing to leave names unchecked.",
        ),
    )


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
    *_tls_keys("zookeeper", "ZooKeeper"),
    ConfigDef(
        "zookeeper.sasl.jaas.config",
        PASSWORD,
        None,
        doc="Who logs in to ZooKeeper: org.apache.zookeeper.server.auth.DigestLoginModule with username and password.",
    ),
    ConfigDef(
        "zookeeper.set.acl",
        BOOLEAN,
        False,
        doc="Whether new nodes in ZooKeeper are for those alone who log in, or have a certificate, as brokers do.",
    ),
    *_tls_keys("etcd", "etcd"),
)
