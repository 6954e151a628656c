"""`moldau broker-api-versions`: the APIs that each broker answers, in which versions, and which of them clients use."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping

from moldau.cli.failures import OK
from moldau.cli.wire import open_cluster
from moldau.client.cluster import Cluster, NoAnswer, Node
from moldau.wire.api import ApiKey

# What clients of Apache Kafka 4.3.1 know of each API, by its number: the oldest and the newest version.
KNOWN = (
    (3, 13), (4, 18), (1, 11), (0, 13), (0, -1), (0, -1), (0, -1), (0, -1), (2, 10), (1, 10),
    (0, 6), (0, 9), (0, 4), (0, 5), (0, 5), (0, 6), (0, 5), (0, 1), (0, 4), (2, 7),
    (1, 6), (0, 2), (0, 6), (2, 4), (0, 5), (0, 4), (0, 5), (1, 2), (0, 5), (1, 3),
    (1, 3), (1, 3), (1, 4), (0, 2), (1, 2), (1, 5), (0, 2), (0, 3), (1, 3), (1, 2),
    (1, 2), (1, 3), (0, 2), (0, 2), (0, 1), (0, 1), (0, 0), (0, 0), (0, 1), (0, 1),
    (0, 0), (0, 0), (0, 2), (0, 1), (0, 1), (0, 2), (2, 3), (0, 2), (0, 0), (0, 1),
    (0, 2), (0, 0), (0, 4), (0, 2), (0, 0), (0, 0), (0, 2), (0, 0), (0, 1), (0, 1),
    (0, 0), (0, 0), (0, 0), (0, 0), (0, 1), (0, 0), (1, 1), (1, 1), (1, 2), (1, 2),
    (0, 1), (0, 0), (0, 0), (0, 0), (0, 0), (0, 1), (0, 0), (0, 1), (0, 0), (0, 0),
    (0, 1), (0, 0), (0, 0),
)  # fmt: skip
# APIs between brokers and controllers: nobody misses them.
NOT_FOR_CLIENTS = frozenset(
    {
        *(ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA, ApiKey.CONTROLLED_SHUTDOWN),
        *(ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH, ApiKey.END_QUORUM_EPOCH, ApiKey.ALTER_PARTITION, ApiKey.ENVELOPE),
        *(ApiKey.FETCH_SNAPSHOT, ApiKey.BROKER_REGISTRATION, ApiKey.BROKER_HEARTBEAT, ApiKey.ALLOCATE_PRODUCER_IDS),
        *(ApiKey.CONTROLLER_REGISTRATION, ApiKey.ASSIGN_REPLICAS_TO_DIRS, ApiKey.UPDATE_RAFT_VOTER),
    }
)


def run(options: Namespace) -> int:
    with open_cluster(options) as client:
        for node in client.nodes().values():
            told = f"{node.host}:{node.port} (id: {node.id} rack: {node.rack or 'null'} isFenced: false)"
            print(f"{told} -> {_versions(client, node)}")
    return OK


def _versions(client: Cluster, node: Node) -> str:
    try:
        return shown(client.versions_of(node.id))
    except NoAnswer as wrong:
        return f"ERROR: {wrong}"


def shown(versions: Mapping[int, tuple[int, int]]) -> str:
    """In the order of the numbers of the APIs."""
    wanted = {int(each) for each in ApiKey} - NOT_FOR_CLIENTS
    lines = [api_line(key, versions.get(key)) for key in sorted(wanted | versions.keys())]
    return "(\n\t" + ",\n\t".join(lines) + "\n)"


def api_line(key: int, answered: tuple[int, int] | None) -> str:
    name = f"{_name(key)}({key}): "
    if answered is None:
        return f"{name}UNSUPPORTED"
    oldest, newest = answered
    told = f"{name}{oldest}" if oldest == newest else f"{name}{oldest} to {newest}"
    if key >= len(KNOWN):
        return told
    known_oldest, known_newest = KNOWN[key]
    if known_newest < oldest:
        return f"{told} [unusable: node too new]"
    if newest < known_oldest:
        return f"{told} [unusable: node too old]"
    return f"{told} [usable: {min(known_newest, newest)}]"


def _name(key: int) -> str:
    if key >= len(KNOWN):
        return "UNKNOWN"
    return "".join(word.capitalize() for word in ApiKey(key).name.split("_"))
