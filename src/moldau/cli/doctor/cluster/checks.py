"""All checks of a cluster, in the order in which they are told."""

from __future__ import annotations

from moldau.cli.doctor.cluster.brokers import (
    check_controller,
    check_missing_brokers,
    check_racks,
    check_reachable,
    check_releases,
)
from moldau.cli.doctor.cluster.disks import check_log_directories
from moldau.cli.doctor.cluster.facts import ClusterFacts
from moldau.cli.doctor.cluster.groups import check_groups, check_retention_against_lag, check_unasked
from moldau.cli.doctor.cluster.partitions import (
    check_in_sync,
    check_offline_partitions,
    check_preferred_leaders,
    check_replicas_per_broker,
    check_spread,
)
from moldau.cli.doctor.cluster.topics import (
    check_endless_retention,
    check_future_records,
    check_min_in_sync,
    check_partition_counts,
    check_partition_traffic,
    check_replication,
    check_segments,
    check_unclean_election,
)
from moldau.cli.doctor.findings import Check

CHECKS: tuple[Check[ClusterFacts], ...] = (
    check_reachable,
    check_missing_brokers,
    check_controller,
    check_releases,
    check_racks,
    check_offline_partitions,
    check_in_sync,
    check_preferred_leaders,
    check_spread,
    check_replicas_per_broker,
    check_replication,
    check_min_in_sync,
    check_unclean_election,
    check_partition_counts,
    check_partition_traffic,
    check_segments,
    check_endless_retention,
    check_future_records,
    check_log_directories,
    check_retention_against_lag,
    check_groups,
    check_unasked,
)
