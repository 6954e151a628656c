"""docs/compatibility.md, made from the handler table: `scripts/compatibility` writes it, a test compares the two."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import MappingProxyType

from moldau.broker.api import Api
from moldau.wire.api import ApiKey

# What a broker of Apache Kafka 4.3.1 answers to ApiVersions.
KAFKA_VERSIONS = MappingProxyType(
    {
        ApiKey.PRODUCE: (0, 13),
        ApiKey.FETCH: (4, 18),
        ApiKey.LIST_OFFSETS: (1, 11),
        ApiKey.METADATA: (0, 13),
        ApiKey.OFFSET_COMMIT: (2, 10),
        ApiKey.OFFSET_FETCH: (1, 10),
        ApiKey.FIND_COORDINATOR: (0, 6),
        ApiKey.JOIN_GROUP: (0, 9),
        ApiKey.HEARTBEAT: (0, 4),
        ApiKey.LEAVE_GROUP: (0, 5),
        ApiKey.SYNC_GROUP: (0, 5),
        ApiKey.DESCRIBE_GROUPS: (0, 6),
        ApiKey.LIST_GROUPS: (0, 5),
        ApiKey.SASL_HANDSHAKE: (0, 1),
        ApiKey.API_VERSIONS: (0, 4),
        ApiKey.CREATE_TOPICS: (2, 7),
        ApiKey.DELETE_TOPICS: (1, 6),
        ApiKey.DELETE_RECORDS: (0, 2),
        ApiKey.INIT_PRODUCER_ID: (0, 5),
        ApiKey.OFFSET_FOR_LEADER_EPOCH: (2, 4),
        ApiKey.ADD_PARTITIONS_TO_TXN: (0, 5),
        ApiKey.ADD_OFFSETS_TO_TXN: (0, 4),
        ApiKey.END_TXN: (0, 5),
        ApiKey.WRITE_TXN_MARKERS: (1, 2),
        ApiKey.TXN_OFFSET_COMMIT: (0, 5),
        ApiKey.DESCRIBE_ACLS: (1, 3),
        ApiKey.CREATE_ACLS: (1, 3),
        ApiKey.DELETE_ACLS: (1, 3),
        ApiKey.DESCRIBE_CONFIGS: (1, 4),
        ApiKey.ALTER_CONFIGS: (0, 2),
        ApiKey.ALTER_REPLICA_LOG_DIRS: (1, 2),
        ApiKey.DESCRIBE_LOG_DIRS: (1, 5),
        ApiKey.SASL_AUTHENTICATE: (0, 2),
        ApiKey.CREATE_PARTITIONS: (0, 3),
        ApiKey.CREATE_DELEGATION_TOKEN: (1, 3),
        ApiKey.RENEW_DELEGATION_TOKEN: (1, 2),
        ApiKey.EXPIRE_DELEGATION_TOKEN: (1, 2),
        ApiKey.DESCRIBE_DELEGATION_TOKEN: (1, 3),
        ApiKey.DELETE_GROUPS: (0, 2),
        ApiKey.ELECT_LEADERS: (0, 2),
        ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1),
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: (0, 1),
        ApiKey.LIST_PARTITION_REASSIGNMENTS: (0, 0),
        ApiKey.OFFSET_DELETE: (0, 0),
        ApiKey.DESCRIBE_CLIENT_QUOTAS: (0, 1),
        ApiKey.ALTER_CLIENT_QUOTAS: (0, 1),
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (0, 0),
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (0, 0),
        ApiKey.DESCRIBE_QUORUM: (0, 2),
        ApiKey.UPDATE_FEATURES: (0, 2),
        ApiKey.DESCRIBE_CLUSTER: (0, 2),
        ApiKey.DESCRIBE_PRODUCERS: (0, 0),
        ApiKey.UNREGISTER_BROKER: (0, 0),
        ApiKey.DESCRIBE_TRANSACTIONS: (0, 0),
        ApiKey.LIST_TRANSACTIONS: (0, 2),
        ApiKey.CONSUMER_GROUP_HEARTBEAT: (0, 1),
        ApiKey.CONSUMER_GROUP_DESCRIBE: (0, 1),
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: (0, 0),
        ApiKey.PUSH_TELEMETRY: (0, 0),
        ApiKey.LIST_CONFIG_RESOURCES: (0, 1),
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: (0, 0),
        ApiKey.SHARE_GROUP_HEARTBEAT: (1, 1),
        ApiKey.SHARE_GROUP_DESCRIBE: (1, 1),
        ApiKey.SHARE_FETCH: (1, 2),
        ApiKey.SHARE_ACKNOWLEDGE: (1, 2),
        ApiKey.ADD_RAFT_VOTER: (0, 1),
        ApiKey.REMOVE_RAFT_VOTER: (0, 0),
        ApiKey.INITIALIZE_SHARE_GROUP_STATE: (0, 0),
        ApiKey.READ_SHARE_GROUP_STATE: (0, 0),
        ApiKey.WRITE_SHARE_GROUP_STATE: (0, 1),
        ApiKey.DELETE_SHARE_GROUP_STATE: (0, 0),
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: (0, 1),
        ApiKey.STREAMS_GROUP_HEARTBEAT: (0, 0),
        ApiKey.STREAMS_GROUP_DESCRIBE: (0, 0),
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (0, 1),
        ApiKey.ALTER_SHARE_GROUP_OFFSETS: (0, 0),
        ApiKey.DELETE_SHARE_GROUP_OFFSETS: (0, 0),
    }
)

_NO_AUTHORIZER = "SECURITY_DISABLED where no `authorizer.class.name` is configured, as from Kafka"

_PATTERNS = (
    "Patterns that say which clients push metrics are RE2's, without look-around and references; there are at most "
    "1,000 subscriptions"
)

# How our answers differ from Apache Kafka's, and why. A client that relies on one of these is the reason to change it.
NOTES = MappingProxyType(
    {
        ApiKey.PRODUCE: (
            "versions 0 to 2 are announced and refused, as Kafka does it: librdkafka reads from them which compression "
            "it may use"
        ),
        ApiKey.METADATA: (
            "an automatically created topic is in the first answer already, where Kafka says "
            "UNKNOWN_TOPIC_OR_PARTITION once and leaves the client to ask again"
        ),
        ApiKey.FIND_COORDINATOR: (
            "INVALID_REQUEST for share groups: there is no such coordinator yet. The topics of groups and transactions "
            "are created before the first answer, where Kafka leaves the client to ask again"
        ),
        ApiKey.CREATE_TOPICS: "answers are in the order of the request",
        ApiKey.DELETE_TOPICS: "answers are in the order of the request, where Kafka shuffles them",
        ApiKey.INIT_PRODUCER_ID: (
            "a producer with an epoch that is out of date is refused at once, where Kafka aborts the open transaction "
            "of its successor first"
        ),
        ApiKey.UPDATE_FEATURES: "there are no share and no streams groups to turn on",
        ApiKey.DESCRIBE_CONFIGS: (
            "a broker shows the keys that mean something here, and `min.insync.replicas` is not set for the cluster by "
            "itself"
        ),
        ApiKey.ALTER_CONFIGS: (f"a resource that is named twice is refused, where Kafka never answers. {_PATTERNS}"),
        ApiKey.INCREMENTAL_ALTER_CONFIGS: (
            "an unknown operation is an INVALID_REQUEST for every kind of resource, where Kafka answers "
            f"UNKNOWN_SERVER_ERROR for some. {_PATTERNS}"
        ),
        ApiKey.CREATE_PARTITIONS: (
            "more than 10,000 new partitions in one request are a POLICY_VIOLATION, where Kafka answers "
            "UNKNOWN_SERVER_ERROR after adding some; answers are in the order of the request"
        ),
        ApiKey.DESCRIBE_CLUSTER: "the controller is the one that there is, where Kafka names any broker",
        ApiKey.DESCRIBE_LOG_DIRS: "no log directory is closed to new partitions",
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: (
            "only where metrics are on, where Kafka announces it with a plugin that takes the metrics, and answers it "
            "without one, too. The names are in alphabetical order, so that of several of them another subscription id "
            "is made"
        ),
        ApiKey.PUSH_TELEMETRY: (
            "as above; an instance ends with its connection, of which Kafka forgets one instance. What is no "
            "OpenTelemetry data is an INVALID_RECORD, as with Kafka where its plugin says so"
        ),
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: (
            "an empty topic name is an INVALID_TOPIC_EXCEPTION, where Kafka answers UNKNOWN_SERVER_ERROR"
        ),
        ApiKey.DESCRIBE_ACLS: _NO_AUTHORIZER,
        ApiKey.CREATE_ACLS: _NO_AUTHORIZER,
        ApiKey.DELETE_ACLS: _NO_AUTHORIZER,
        ApiKey.SASL_AUTHENTICATE: (
            "a delegation token that has expired is refused, where Kafka takes it and hangs up at the next request; "
            "so is one whose owner is no `User`, where Kafka takes it for the user of that name"
        ),
        ApiKey.CREATE_DELEGATION_TOKEN: (
            "more than 1,000 renewers are an INVALID_REQUEST; an owner without a type is an INVALID_PRINCIPAL_TYPE, "
            "where Kafka answers UNKNOWN_SERVER_ERROR"
        ),
        ApiKey.ALTER_REPLICA_LOG_DIRS: (
            "a move that a stop of the broker interrupts is to be asked for again, where Kafka goes on with it; a "
            "replica that is still to be made is not made in the folder that was asked for, but may be moved there then"
        ),
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: (
            "a reassignment that replaces another one is what it asks for, where Kafka goes on with what the first one "
            "wanted to add and remove if the second one adds or removes nothing"
        ),
        ApiKey.ALTER_CLIENT_QUOTAS: "a value that is not a number is refused, where Kafka takes it",
        ApiKey.DESCRIBE_QUORUM: (
            "the metadata are in a store, not in a quorum of brokers: every broker may control and so is told of as a "
            "voter, offsets are entries of the store, and a voter that is down is told of as never seen"
        ),
        ApiKey.UNREGISTER_BROKER: (
            "a broker that runs is an INVALID_REQUEST, where Kafka forgets it and leaves its partitions without it"
        ),
    }
)

_TITLE = """\
# Compatibility

What Moldau answers beside a broker of Apache Kafka 4.3.1. `scripts/compatibility` makes this page from the table of
handlers, the same one that the answer to ApiVersions comes from; a test fails when the two part.

## Answered

| key | API | Moldau | Apache Kafka | where they differ |
|---|---|---|---|---|
"""
_MISSING = """
## Not answered

These are not announced. A request with such a key ends its connection, as a key that Kafka doesn't know does there.

| key | API | Apache Kafka |
|---|---|---|
"""


def render(table: Iterable[Api]) -> str:
    rows = {row.key: row for row in table}
    answered = [
        _row(key, _range(rows[key].versions), _range(KAFKA_VERSIONS[key]), NOTES.get(key, "")) for key in sorted(rows)
    ]
    missing = [_row(key, _range(versions)) for key, versions in KAFKA_VERSIONS.items() if key not in rows]
    return _TITLE + "".join(answered) + _MISSING + "".join(missing)


def _row(key: ApiKey, *cells: str) -> str:
    return " | ".join((f"| {key:d}", _name(key), *cells)) + " |\n"


def _name(key: ApiKey) -> str:
    return key.name.title().replace("_", "")


def _range(versions: tuple[int, int]) -> str:
    oldest, newest = versions
    return str(oldest) if oldest == newest else f"{oldest}-{newest}"


if __name__ == "__main__":
    from moldau.broker.handlers import TABLE
    from moldau.broker.handlers.telemetry import TELEMETRY

    sys.stdout.write(render(TABLE + TELEMETRY))
