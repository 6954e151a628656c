"""Apache Kafka's tools for clusters: what an operator is told while brokers go and come back and replicas move.

`transcripts/cluster-*.txt` hold what three brokers of Apache Kafka make the tools print, and
`python -m tests.suites.cluster_commands CHAPTER` prints one anew.

A line of a chapter is a tool with its arguments, or `!` and something that happens to the cluster. The transcript has
what does not depend on time, chance and addresses.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from types import MappingProxyType

from confluent_kafka import Producer

from moldau.embedded.process import Address
from moldau.replication.channel import ChannelError
from moldau.wire.messages import DescribeClusterRequest, DescribeLogDirsRequest, MetadataRequest, MetadataResponse
from moldau.wire.messages.describe_log_dirs import DescribableLogDirTopic
from moldau.wire.messages.metadata import MetadataResponsePartition
from tests.clients.drivers import LineProcess
from tests.clients.toolchains import tool_host
from tests.cluster.asking import ask_address
from tests.clusters import Cluster, running_cluster
from tests.suites import tools
from tests.suites.tools import Host, Printed, Tools

PROPERTIES = {
    "auto.leader.rebalance.enable": "false",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
}
SETTLE_S = 120.0
LOOK_S = 0.05
# Stack traces; what is about APIs and features that are not all there; the topics of coordinators, which are there when
# somebody needed them.
LEFT_OUT = re.compile(
    r"\s*(at |\.\.\. |\w+\(\d+\): |\)$|Feature: (kraft|share|streams)\.version)"
    r"|(.*for partition|\s*Topic): (spread|two|after)"
)
GENERAL = [
    (re.compile(pattern), general)
    for pattern, general in (
        (r"127\.0\.0\.1[: ]\d+", "HOST"),
        (r"TopicId: [\w-]{22}", "TopicId: ID"),
        (r"(Cluster ?I[dD]): [\w-]{22}", r"\1: ID"),
        (r"(LeaderId|LeaderEpoch|HighWatermark|MaxFollowerLag|MaxFollowerLagTimeMs|Epoch): -?\d+", r"\1: NUMBER"),
        (r"(CONTROLLER|PLAINTEXT)://", "LISTENER://"),
        (r"^\d A{22} .* (Leader|Follower|Observer)$", r"\1"),
        (r'"size":[1-9]\d*', '"size":BYTES'),
        (r"Local controller \d", "Local controller ID"),
        (r"/[^\"]*/(broker|node)-(\d)(/data)?", r"DIRECTORY-\2"),
    )
]
METADATA_VERSION, LOG_DIRS_VERSION, DESCRIBE_CLUSTER_VERSION = 12, 4, 2
TOOLS = MappingProxyType(
    {
        "topics": tools.TOPICS,
        "configs": tools.CONFIGS,
        "election": tools.ELECTION,
        "reassign": tools.REASSIGNMENT,
        "quorum": tools.QUORUM,
        "cluster": tools.CLUSTER,
        "features": tools.FEATURES,
        "log-dirs": tools.LOG_DIRS,
        "api-versions": tools.API_VERSIONS,
        "delete-records": tools.DELETE_RECORDS,
        "get-offsets": tools.GET_OFFSETS,
    }
)

# Apache Kafka writes this setting when it formats a cluster.
BEGINNING = """
configs --alter --broker-defaults --add-config min.insync.replicas=1
"""
MAKE = """
topics --create --topic orders --replica-assignment 1:2:3,2:3:1,3:1:2 --config min.insync.replicas=2
topics --create --topic pairs --replica-assignment 1:2,2:3,3:1
topics --create --topic single --replica-assignment 3,1
topics --create --topic too-many --partitions 1 --replication-factor 4
topics --create --topic spread --partitions 6 --replication-factor 3
topics --create --topic unknown --replica-assignment 1:2:9
topics --create --topic twice --replica-assignment 1:1:2
topics --create --topic uneven --replica-assignment 1:2:3,1:2
! produce orders 0 1
! produce pairs 0 1
! produce single 0 1
topics --describe --topic orders
topics --describe --topic pairs
topics --describe --topic single
"""
LOOK = """
topics --describe --topic orders
topics --describe --topic pairs
topics --describe --topic single
topics --describe --under-replicated-partitions
topics --describe --under-replicated-partitions --topic orders
topics --describe --under-min-isr-partitions
topics --describe --at-min-isr-partitions
topics --describe --unavailable-partitions
"""
BROKERS_GO = (
    MAKE
    + LOOK
    + """
! kill 3
"""
    + LOOK
    + """
topics --create --topic after --partitions 1 --replication-factor 3
topics --create --topic two --partitions 3 --replication-factor 2
topics --create --topic onto-3 --replica-assignment 1:2:3
topics --create --topic only-3 --replica-assignment 3
topics --describe --topic onto-3
topics --describe --topic only-3
topics --alter --topic orders --partitions 4 --replica-assignment 1:2:3,2:3:1,3:1:2,3:1:2
topics --alter --topic orders --partitions 4
election --election-type PREFERRED --topic orders --partition 2
election --election-type PREFERRED --topic orders --partition 0
election --election-type PREFERRED --topic missing --partition 0
election --election-type PREFERRED --topic orders --partition 9
election --election-type PREFERRED --all-topic-partitions
election --election-type UNCLEAN --topic single --partition 0
election --election-type UNCLEAN --topic single --partition 1
election --election-type UNCLEAN --topic orders --partition 2
election --election-type UNCLEAN --all-topic-partitions
cluster list-endpoints
cluster list-endpoints --include-fenced-brokers
quorum describe --status
quorum describe --replication
log-dirs --describe --topic-list orders --broker-list 1,2
log-dirs --describe --topic-list orders --broker-list 1,2,3
log-dirs --describe --topic-list orders
reassign --execute --reassignment-json-file ONTO_3
reassign --list
! start 3
topics --describe --topic onto-3
topics --describe --topic orders
topics --describe --under-replicated-partitions
topics --describe --at-min-isr-partitions
topics --describe --unavailable-partitions
election --election-type PREFERRED --topic orders --partition 2
election --election-type PREFERRED --topic orders --partition 2
election --election-type PREFERRED --path-to-json-file SOME
election --election-type PREFERRED --all-topic-partitions
election --election-type PREFERRED --all-topic-partitions
election --election-type UNCLEAN --all-topic-partitions
election --election-type SIDEWAYS --all-topic-partitions
! preferred
topics --describe --topic orders
topics --describe --topic pairs
topics --describe --topic single
"""
)
UNCLEAN = """
topics --create --topic pair --replica-assignment 1:2 --config min.insync.replicas=1
topics --create --topic guarded --replica-assignment 1:2 --config min.insync.replicas=2
topics --create --topic careless --replica-assignment 1:2 --config unclean.leader.election.enable=true
! produce pair 0 1
! produce guarded 0 1
! produce careless 0 1
! stop 1
topics --describe --exclude-internal
topics --describe --under-min-isr-partitions
topics --describe --at-min-isr-partitions
! produce pair 0 1
! produce careless 0 1
! kill-last 2
! start 1
! leader pair -1
! leader careless 1
topics --describe --topic pair
topics --describe --topic guarded
topics --describe --topic careless
topics --describe --unavailable-partitions
topics --describe --under-min-isr-partitions
topics --describe --at-min-isr-partitions
election --election-type PREFERRED --topic pair --partition 0
election --election-type UNCLEAN --topic pair --partition 0
! leader pair 1
topics --describe --topic pair
election --election-type UNCLEAN --topic pair --partition 0
election --election-type UNCLEAN --all-topic-partitions
topics --describe --unavailable-partitions
! start 2
topics --describe --exclude-internal
"""
MOVES = """
topics --create --topic orders --replica-assignment 1:2,2:3,3:1
topics --create --topic other --replica-assignment 1
! produce orders 0 5
! produce orders 1 5
! produce orders 2 5
reassign --generate --topics-to-move-json-file TOPICS --broker-list 1,2,3
reassign --generate --topics-to-move-json-file TOPICS --broker-list 1
reassign --generate --topics-to-move-json-file TOPICS --broker-list 1,9
reassign --generate --topics-to-move-json-file UNKNOWN --broker-list 1,2
reassign --verify --reassignment-json-file MOVE
reassign --list
reassign --execute --reassignment-json-file BAD_BROKER
reassign --execute --reassignment-json-file BAD_TOPIC
reassign --execute --reassignment-json-file BAD_PARTITION
reassign --execute --reassignment-json-file DOUBLED
reassign --execute --reassignment-json-file EMPTY_REPLICAS
reassign --execute --reassignment-json-file MORE --disallow-replication-factor-change
reassign --cancel --reassignment-json-file MOVE
reassign --execute --reassignment-json-file MOVE --throttle 1000
reassign --list
reassign --verify --reassignment-json-file MOVE --preserve-throttles
topics --describe --topic orders
topics --describe --under-replicated-partitions
topics --describe --under-replicated-partitions --topic orders
configs --describe --topic orders
configs --describe --entity-type brokers
reassign --execute --reassignment-json-file MOVE --throttle 1000
reassign --execute --reassignment-json-file MOVE --additional --throttle 2000
configs --describe --entity-type brokers
reassign --cancel --reassignment-json-file MOVE --preserve-throttles
! replicas orders 2
topics --describe --topic orders
reassign --list
reassign --verify --reassignment-json-file MOVE
configs --describe --topic orders
configs --describe --entity-type brokers
reassign --execute --reassignment-json-file MOVE --throttle 1000
! hosted orders 9
reassign --execute --reassignment-json-file MOVE --additional --throttle 100000000
! replicas orders 2
topics --describe --topic orders
reassign --verify --reassignment-json-file BACK
reassign --verify --reassignment-json-file MOVE
configs --describe --topic orders
configs --describe --entity-type brokers
reassign --execute --reassignment-json-file MORE
! replicas orders 3
reassign --verify --reassignment-json-file MORE
topics --describe --topic orders
log-dirs --describe --topic-list orders
reassign --execute --reassignment-json-file FEWER
! replicas orders 1
reassign --verify --reassignment-json-file FEWER
topics --describe --topic orders
log-dirs --describe --topic-list orders
reassign --cancel --reassignment-json-file FEWER
reassign --execute --reassignment-json-file ORDER
! replicas orders 3
topics --describe --topic orders
election --election-type PREFERRED --all-topic-partitions
! preferred
topics --describe --topic orders
"""
MEMBERS = """
cluster cluster-id
cluster list-endpoints
cluster list-endpoints --include-fenced-brokers
cluster unregister --id 9
quorum describe --status
quorum describe --replication
quorum describe --replication --human-readable
features describe
features upgrade --feature metadata.version=20
features upgrade --feature metadata.version=99
features upgrade --metadata 4.2
features downgrade --feature group.version=0
features upgrade --feature group.version=1
features upgrade --feature nonsense=1
features downgrade --feature eligible.leader.replicas.version=0 --dry-run
api-versions
topics --create --topic orders --replica-assignment 1:2:3,2:3:1,3:1:2
log-dirs --describe --topic-list missing
log-dirs --describe --topic-list orders --broker-list 9
! stop 3
cluster list-endpoints
cluster list-endpoints --include-fenced-brokers
topics --describe --topic orders
cluster unregister --id 3
cluster unregister --id 3
cluster list-endpoints --include-fenced-brokers
topics --describe --topic orders
topics --describe --under-replicated-partitions
! start 3
cluster list-endpoints
topics --describe --topic orders
"""
DELETIONS = """
topics --create --topic orders --replica-assignment 1:2:3,2:3:1,3:1:2
topics --create --topic single --replica-assignment 1
topics --create --topic compacted --replica-assignment 1:2:3 --config cleanup.policy=compact
! produce orders 0 1
! produce orders 1 1
! produce orders 2 1
! produce single 0 1
delete-records --offset-json-file BEGINNINGS
get-offsets --topic orders --time earliest
delete-records --offset-json-file BEGINNINGS
delete-records --offset-json-file REFUSED
! kill 3
delete-records --offset-json-file FURTHER
get-offsets --topic orders --time earliest
! start 3
election --election-type PREFERRED --all-topic-partitions
! preferred
get-offsets --topic orders --time earliest
delete-records --offset-json-file FURTHER
! kill 1
get-offsets --topic orders --time earliest
get-offsets --topic orders --time latest
"""
CHAPTERS: Mapping[str, str] = MappingProxyType(
    {"brokers-go": BROKERS_GO, "unclean": UNCLEAN, "moves": MOVES, "members": MEMBERS, "deletions": DELETIONS}
)


def _moves(topic: str, *replicas: list[int]) -> str:
    rows = [{"topic": topic, "partition": index, "replicas": each} for index, each in enumerate(replicas)]
    return json.dumps({"version": 1, "partitions": rows})


def _offsets(**topics: list[int]) -> str:
    rows = [
        {"topic": topic, "partition": index, "offset": offset}
        for topic, offsets in topics.items()
        for index, offset in enumerate(offsets)
    ]
    return json.dumps({"version": 1, "partitions": rows})


FILES: Mapping[str, str] = MappingProxyType(
    {
        "TOPICS": json.dumps({"version": 1, "topics": [{"topic": "orders"}]}),
        "UNKNOWN": json.dumps({"version": 1, "topics": [{"topic": "missing"}]}),
        "SOME": json.dumps({"partitions": [{"topic": "orders", "partition": index} for index in (0, 1, 2)]}),
        "ONTO_3": _moves("single", [1], [3]),
        "MOVE": _moves("orders", [3, 1], [1, 2], [2, 3]),
        "BACK": _moves("orders", [1, 2], [2, 3], [3, 1]),
        "MORE": _moves("orders", [1, 2, 3], [2, 3, 1], [3, 1, 2]),
        "FEWER": _moves("orders", [2], [3], [1]),
        "ORDER": _moves("orders", [3, 2, 1], [1, 3, 2], [2, 1, 3]),
        "BAD_BROKER": _moves("orders", [1, 9]),
        "BAD_TOPIC": _moves("missing", [1, 2]),
        "BAD_PARTITION": _moves("other", [1], [2]),
        "DOUBLED": _moves("orders", [1, 1]),
        "EMPTY_REPLICAS": _moves("orders", []),
        "BEGINNINGS": _offsets(orders=[30, -1, 0], single=[40]),
        "REFUSED": _offsets(orders=[91, -2], compacted=[0]),
        "FURTHER": _offsets(orders=[60, -1, 50], single=[-1]),
    }
)

SORTED = ("Topic: ", "Error comp", "HOST", "partition: ")
ELECTED = re.compile(r"^(Successfully completed .* partitions |Valid replica already elected for partitions )(.*)$")


def transcript(cluster: Cluster, host: Host, chapter: str, *, scratch: Path) -> Iterator[str]:
    """Line by line what the commands print on a fresh cluster, in a form that is the same each time."""
    for name, text in FILES.items():
        (scratch / name).write_text(text)
    tools = Tools(host, cluster.bootstrap_servers)
    for line in (BEGINNING + CHAPTERS[chapter]).splitlines():
        words = line.split()
        if not words:
            continue
        yield f"$ {line}"
        if words[0] == "!":
            HAPPENINGS[words[1]](cluster, *words[2:])
        else:
            yield from _normalised(_run(tools, words, scratch))
            if words[:3] == ["cluster", "unregister", "--id"]:
                _await_unregistered(cluster, words[3])


def _run(tools: Tools, words: list[str], scratch: Path) -> Printed:
    arguments = [str(scratch / each) if each in FILES else each for each in words[1:]]
    tool = TOOLS[words[0]]
    return tools.run(tool, *arguments, is_address_last=words[0] == "cluster")


def _produce(cluster: Cluster, topic: str, partition: str, count: str) -> None:
    """So many batches of some 900 kB, which is less than a follower takes at once."""
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 10_000, "batch.size": 950_000, "acks": "all"}
    )
    for _ in range(int(count)):
        for _ in range(90):
            producer.produce(topic, b"v" * 10_000, partition=int(partition))
        assert producer.flush(SETTLE_S) == 0


def _kill(cluster: Cluster, broker: str) -> None:
    cluster.kill(int(broker))
    _until(cluster, lambda seen: _is_gone(seen, int(broker)))


def _kill_last(cluster: Cluster, broker: str) -> None:
    """Apache Kafka loses its quorum by that, so nobody can be asked what becomes of it."""
    cluster.kill(int(broker))


def _stop(cluster: Cluster, broker: str) -> None:
    cluster.stop(int(broker))
    _until(cluster, lambda seen: _is_gone(seen, int(broker)))


def _start(cluster: Cluster, broker: str) -> None:
    cluster.restart(int(broker))
    _until(cluster, lambda seen: _is_back(seen, int(broker)))


def _is_gone(seen: MetadataResponse, broker: int) -> bool:
    """It leads nothing, and is in the ISR only of what nobody else can lead."""
    return broker not in {each.node_id for each in seen.brokers} and all(
        each.leader_id != broker and (broker not in each.isr_nodes or each.leader_id < 0) for each in _partitions(seen)
    )


def _is_back(seen: MetadataResponse, broker: int) -> bool:
    """Its replicas are in sync, but for those of partitions that nobody leads."""
    return broker in {each.node_id for each in seen.brokers} and all(
        broker in each.isr_nodes or each.leader_id < 0 for each in _partitions(seen) if broker in each.replica_nodes
    )


def _await_leader(cluster: Cluster, topic: str, leader: str) -> None:
    _until(cluster, lambda seen: {each.leader_id for each in _partitions(seen, topic)} == {int(leader)})


def _await_preferred(cluster: Cluster) -> None:
    _until(cluster, lambda seen: all(each.leader_id == each.replica_nodes[0] for each in _partitions(seen)))


def _await_replicas(cluster: Cluster, topic: str, count: str) -> None:
    """Until all partitions have so many replicas, which are in sync, and the first leads."""
    _until(
        cluster,
        lambda seen: all(
            len(each.replica_nodes) == len(each.isr_nodes) == int(count) for each in _partitions(seen, topic)
        ),
    )


def _await_hosted(cluster: Cluster, topic: str, count: str) -> None:
    """Until brokers tell of so many replicas in their log directories, whole or not."""
    asked = DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic=topic, partitions=[0, 1, 2])])
    deadline_s = time.monotonic() + SETTLE_S
    while True:
        answers = [
            ask_address(_address(each), asked, LOG_DIRS_VERSION) for each in cluster.bootstrap_servers.split(",")
        ]
        directories = [directory for answer in answers for directory in answer.results]
        if sum(len(found.partitions) for directory in directories for found in directory.topics) == int(count):
            return
        assert time.monotonic() < deadline_s, f"it never came: {answers}"
        time.sleep(LOOK_S)


def _await_unregistered(cluster: Cluster, broker: str) -> None:
    """The controller has answered; the others hear of it a moment later."""
    asked = DescribeClusterRequest(include_fenced_brokers=True)
    deadline_s = time.monotonic() + SETTLE_S
    for address in cluster.bootstrap_servers.split(","):
        if _seen_by(address) is None:
            continue
        while int(broker) in {
            each.broker_id for each in ask_address(_address(address), asked, DESCRIBE_CLUSTER_VERSION).brokers
        }:
            assert time.monotonic() < deadline_s, f"{address} still knows broker {broker}"
            time.sleep(LOOK_S)


def _partitions(seen: MetadataResponse, topic: str | None = None) -> list[MetadataResponsePartition]:
    return [row for found in seen.topics if topic in (None, found.name) for row in found.partitions]


def _until(cluster: Cluster, is_so: Callable[[MetadataResponse], bool]) -> None:
    """As every broker that runs sees it."""
    deadline_s = time.monotonic() + SETTLE_S
    for address in cluster.bootstrap_servers.split(","):
        while (seen := _seen_by(address)) is not None and not is_so(seen):
            assert time.monotonic() < deadline_s, f"it never came: {seen}"
            time.sleep(LOOK_S)


def _seen_by(address: str) -> MetadataResponse | None:
    try:
        seen: MetadataResponse = ask_address(_address(address), MetadataRequest(topics=None), METADATA_VERSION)
    except ChannelError:
        return None
    return seen


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    return Address(host, int(port))


HAPPENINGS: Mapping[str, Callable[..., None]] = MappingProxyType(
    {
        "produce": _produce,
        "kill": _kill,
        "kill-last": _kill_last,
        "stop": _stop,
        "start": _start,
        "leader": _await_leader,
        "preferred": _await_preferred,
        "replicas": _await_replicas,
        "hosted": _await_hosted,
    }
)


def _normalised(printed: Printed) -> list[str]:
    # A tool that ends with 1 has printed its whole usage; what it has to say comes last.
    errors = [line for line in printed.err.splitlines() if not re.match(r"SLF4J|\s+at |Caused by|\s*$", line)]
    lines = printed.lines + (errors[-1:] if printed.exit_code else errors)
    lines = [re.sub(r"\s+", " ", line).strip() for line in lines if not LEFT_OUT.match(line)]
    for pattern, general in GENERAL:
        lines = [pattern.sub(general, line) for line in lines]
    lines = [ELECTED.sub(lambda found: found[1] + _shown(found[2]), line) for line in lines]
    is_proposed = False
    for at, line in enumerate(lines):
        is_proposed = is_proposed or line.startswith("Proposed")
        if is_proposed and line.startswith("{"):
            lines[at] = re.sub(r"\[\d,\d\]", "[TWO]", line)  # where it begins is up to chance
    return _sorted_runs(lines) + ([f"exit {printed.exit_code}"] if printed.exit_code else [])


def _shown(partitions: str) -> str:
    """They come in any order."""
    return ", ".join(sorted(each for each in partitions.split(", ") if not re.match(r"(spread|two|after)-", each)))


def _sorted_runs(lines: list[str]) -> list[str]:
    """Partitions of several topics come in any order, and so do brokers."""
    runs = groupby(lines, key=lambda line: line[:5] if line.startswith(SORTED) else line)
    return [line for _, run in runs for line in sorted(run)]


def main() -> None:
    with (
        running_cluster(sys.argv[2] if len(sys.argv) > 2 else "apache", properties=PROPERTIES) as cluster,
        LineProcess(tool_host) as host,
        tempfile.TemporaryDirectory() as scratch,
    ):
        for line in transcript(cluster, host, sys.argv[1], scratch=Path(scratch)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
