"""Keys of listeners and connections: as Kafka 4.3 defines them, in its order."""

from __future__ import annotations

from moldau.core.config.definitions import INT_MAX, ConfigDef, ConfigType, at_least, list_of

STRING = ConfigType.STRING
INT = ConfigType.INT
LONG = ConfigType.LONG
LIST = ConfigType.LIST

NETWORK_KEYS = (
    ConfigDef("socket.connection.setup.timeout.ms", LONG, 10_000),
    ConfigDef("socket.connection.setup.timeout.max.ms", LONG, 30_000),
    ConfigDef(
        "listeners",
        LIST,
        ("PLAINTEXT://:9092",),
        list_of(),
        "Where the broker listens: name://host:port, comma-separated; an empty host means every interface.",
    ),
    ConfigDef(
        "advertised.listeners",
        LIST,
        None,
        list_of(),
        "The addresses that clients are told, when they differ from listeners.",
    ),
    ConfigDef(
        "listener.security.protocol.map",
        STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        None,
        "Which security protocol each listener name speaks.",
    ),
    ConfigDef(
        "socket.send.buffer.bytes", INT, 102_400, None, "The send buffer of a connection; -1 leaves it to the system."
    ),
    ConfigDef(
        "socket.receive.buffer.bytes",
        INT,
        102_400,
        None,
        "The receive buffer of a connection; -1 leaves it to the system.",
    ),
    ConfigDef("socket.request.max.bytes", INT, 104_857_600, at_least(1), "The largest request that is read."),
    ConfigDef("socket.listen.backlog.size", INT, 50, at_least(1), "How many connections may wait to be accepted."),
    ConfigDef("max.connections.per.ip", INT, INT_MAX, at_least(0), "How many connections one address may hold."),
    ConfigDef(
        "max.connections.per.ip.overrides",
        STRING,
        "",
        None,
        "host:count pairs that replace max.connections.per.ip for those hosts.",
    ),
    ConfigDef("max.connections", INT, INT_MAX, at_least(0), "How many connections the broker holds at most."),
    ConfigDef("max.connection.creation.rate", INT, INT_MAX, at_least(0), "How many connections a second are accepted."),
    ConfigDef("connections.max.idle.ms", LONG, 600_000, None, "A connection that is idle for this long is closed."),
    ConfigDef(
        "connection.failed.authentication.delay.ms",
        INT,
        100,
        at_least(0),
        "How long a client that failed to log in waits for the answer.",
    ),
    ConfigDef("queued.max.requests", INT, 500, at_least(1)),
    ConfigDef(
        "queued.max.request.bytes",
        LONG,
        -1,
        None,
        "Memory for large requests that have not arrived whole, of all connections together; -1 is 64 MiB here.",
    ),
    ConfigDef("num.network.threads", INT, 3, at_least(1)),
    ConfigDef(
        "controller.socket.timeout.ms", INT, 30_000, None, "How long a broker waits for the controller's answer."
    ),
)
