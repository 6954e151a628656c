"""`moldau metadata-quorum`: who keeps the cluster's metadata, and how far each of them is."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Sequence

from moldau.cli.failures import OK, CommandFailed, UsageError
from moldau.cli.kafka.bootstrap import open_bootstrap
from moldau.cli.kafka.tables import print_pretty_table
from moldau.client.cluster import Cluster, check
from moldau.core.clock import SystemClock
from moldau.core.ids import format_uuid
from moldau.wire.messages import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
)
from moldau.wire.messages.describe_quorum import PartitionData, QuorumPartitionQuery, QuorumTopicQuery, ReplicaState

METADATA = "__cluster_metadata"
HEADS = ("NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp", "LastCaughtUpTimestamp", "Status")
NEVER = -1
NO_DIRECTORY = bytes(16)


def refuse(_: Namespace) -> int:
    raise CommandFailed(
        "members of a metadata quorum cannot be added or removed by this tool: they are what controller.quorum.voters"
        " says; for a quorum of Apache Kafka that can change, use its own kafka-metadata-quorum.sh"
    )


def describe_quorum(options: Namespace) -> int:
    if options.status and options.replication:
        raise UsageError("Only one of --status or --replication should be specified with describe sub-command")
    if not (options.status or options.replication):
        raise UsageError("One of --status or --replication must be specified with describe sub-command")
    if options.status and options.human_readable:
        raise UsageError("The option --human-readable is only supported along with --replication")
    with open_bootstrap(options) as client:
        quorum, endpoints = _quorum(client)
        if options.replication:
            print_replication(quorum, is_human=options.human_readable)
        else:
            print_status(_cluster_id(client), quorum, endpoints)
    return OK


def _quorum(client: Cluster) -> tuple[PartitionData, dict[int, list[str]]]:
    request = DescribeQuorumRequest(topics=[QuorumTopicQuery(METADATA, [QuorumPartitionQuery(0)])])
    answer = client.ask_controller(request, DescribeQuorumResponse, codes=lambda found: [found.error_code])
    check(answer.error_code, answer.error_message)
    quorum = answer.topics[0].partitions[0]
    check(quorum.error_code, quorum.error_message)
    endpoints = {
        node.node_id: [f"{each.name}://{each.host}:{each.port}" for each in node.listeners] for node in answer.nodes
    }
    return quorum, endpoints


def _cluster_id(client: Cluster) -> str:
    answer = client.ask(DescribeClusterRequest(endpoint_type=client.kind), DescribeClusterResponse)
    check(answer.error_code, answer.error_message)
    return answer.cluster_id


def _leader(quorum: PartitionData) -> ReplicaState:
    found = next((each for each in quorum.current_voters if each.replica_id == quorum.leader_id), None)
    if found is None:
        raise CommandFailed("the metadata quorum has no leader; try again")
    return found


def print_replication(quorum: PartitionData, *, is_human: bool) -> None:
    leader = _leader(quorum)
    followers = [each for each in quorum.current_voters if each is not leader]
    rows = [
        [
            str(each.replica_id),
            format_uuid(bytes(each.replica_directory_id)),
            str(each.log_end_offset),
            str(leader.log_end_offset - each.log_end_offset),
            _time(each.last_fetch_timestamp, is_human=is_human),
            _time(each.last_caught_up_timestamp, is_human=is_human),
            status,
        ]
        for replicas, status in (([leader], "Leader"), (followers, "Follower"), (quorum.observers, "Observer"))
        for each in replicas
    ]
    print_pretty_table(HEADS, rows)


def _time(timestamp_ms: int, *, is_human: bool) -> str:
    if timestamp_ms == NEVER or not is_human:
        return str(timestamp_ms)
    now_ms = SystemClock().now_ms()
    if not 0 < timestamp_ms <= now_ms:
        raise CommandFailed(
            "Error while computing relative time, possible drift in system clock."
            f" Current timestamp is {now_ms}, the replica's is {timestamp_ms}"
        )
    return f"{now_ms - timestamp_ms} ms ago"


def print_status(cluster_id: str, quorum: PartitionData, endpoints: dict[int, list[str]]) -> None:
    leader = _leader(quorum)
    last = min(quorum.current_voters, key=lambda each: each.log_end_offset)
    lines = {
        "ClusterId": cluster_id,
        "LeaderId": quorum.leader_id,
        "LeaderEpoch": quorum.leader_epoch,
        "HighWatermark": quorum.high_watermark,
        "MaxFollowerLag": leader.log_end_offset - last.log_end_offset,
        "MaxFollowerLagTimeMs": _lag_ms(leader, last),
        "CurrentVoters": _replicas(quorum.current_voters, endpoints),
        "CurrentObservers": _replicas(quorum.observers, endpoints),
    }
    for name, value in lines.items():
        print(f"{f'{name}:':<24}{value}")


def _lag_ms(leader: ReplicaState, last: ReplicaState) -> int:
    if last is leader:
        return 0
    if NEVER in (leader.last_caught_up_timestamp, last.last_caught_up_timestamp):
        return NEVER
    return leader.last_caught_up_timestamp - last.last_caught_up_timestamp


def _replicas(replicas: Iterable[ReplicaState], endpoints: dict[int, list[str]]) -> str:
    return f"[{', '.join(_replica(each, endpoints.get(each.replica_id, [])) for each in replicas)}]"


def _replica(replica: ReplicaState, endpoints: Sequence[str]) -> str:
    parts = [f'"id": {replica.replica_id}']
    directory = bytes(replica.replica_directory_id)
    if directory != NO_DIRECTORY:
        parts.append(f'"directoryId": "{format_uuid(directory)}"')
    if endpoints:
        quoted = ", ".join(f'"{each}"' for each in endpoints)
        parts.append(f'"endpoints": [{quoted}]')
    return f"{{{', '.join(parts)}}}"
