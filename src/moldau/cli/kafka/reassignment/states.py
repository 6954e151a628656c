"""How far reassignments and moves between log directories are."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.cli.kafka.reassignment.asking import LogDirs, log_dirs_of, ongoing, replicas_of
from moldau.cli.kafka.reassignment.documents import Plan, Replica
from moldau.client.cluster import Cluster


def verify_partitions(client: Cluster, plan: Plan) -> bool:
    """Says how each is, and gives whether any goes on, be it of another plan."""
    active = ongoing(client)
    current = replicas_of(client, (place.topic for place, _ in plan.partitions if place not in active), known_only=True)
    print("Status of partition reassignment:")
    for place, replicas in sorted(dict(plan.partitions).items()):
        there = current.get(place, [])
        if place in active:
            print(f"Reassignment of partition {place} is still in progress.")
        elif there == replicas:
            print(f"Reassignment of partition {place} is completed.")
        else:
            print(
                f"There is no active reassignment of partition {place}, but replica set is"
                f" {','.join(map(str, there))} rather than {','.join(map(str, replicas))}."
            )
    return bool(active)


def verify_log_dirs(client: Cluster, plan: Plan) -> bool:
    """Whether any replica of the plan is on its way to another directory."""
    found = log_dirs_of(client, plan.log_dirs) if plan.log_dirs else {}
    told = [_told(replica, wanted, found.get(replica, LogDirs())) for replica, wanted in sorted(plan.log_dirs.items())]
    print("\n".join(told))
    return bool(active_moves(plan.log_dirs, found))


def active_moves(wanted: Mapping[Replica, str], found: Mapping[Replica, LogDirs]) -> dict[Replica, str]:
    """Where those come from that are on their way."""
    return {
        replica: dirs.current
        for replica, dirs in found.items()
        if replica in wanted and dirs.current is not None and dirs.future is not None
    }


def _told(replica: Replica, wanted: str, dirs: LogDirs) -> str:
    place = f"Partition {replica.topic}-{replica.partition}"
    if dirs.current is None:
        return (
            f"{place} is not found in any live log dir on broker {replica.broker_id}."
            " There is likely an offline log directory on the broker."
        )
    if dirs.future == wanted:
        return f"Reassignment of replica {replica} is still in progress."
    if dirs.future is not None:
        return f"{place} on broker {replica.broker_id} is being moved to log dir {dirs.future} instead of {wanted}."
    if dirs.current == wanted:
        return f"Reassignment of replica {replica} completed successfully."
    return f"{place} on broker {replica.broker_id} is not being moved from log dir {dirs.current} to {wanted}."
