"""`moldau reassign-partitions`: give partitions other replicas, as Apache Kafka's tool does."""

from __future__ import annotations

import random
import time
from argparse import Namespace
from collections.abc import Mapping

from moldau.cli.failures import FAILED, OK, CommandFailed, UsageError
from moldau.cli.kafka.bootstrap import open_bootstrap
from moldau.cli.kafka.reassignment.asking import log_dirs_of, move_log_dirs, ongoing, reassign, replicas_of
from moldau.cli.kafka.reassignment.command import BROKERS, REPLICAS
from moldau.cli.kafka.reassignment.documents import (
    Assignment,
    Replica,
    assignment_json,
    checked,
    duplicates,
    read_plan,
    read_topics,
)
from moldau.cli.kafka.reassignment.placing import place
from moldau.cli.kafka.reassignment.states import active_moves, verify_log_dirs, verify_partitions
from moldau.cli.kafka.reassignment.throttles import (
    clear_throttles,
    moves_of,
    throttle_log_dirs,
    throttle_replication,
)
from moldau.client.cluster import Cluster
from moldau.core.ids import TopicPartition

EVERYWHERE = {"--bootstrap-server", "--command-config"}
NO_RATE = -1
PAUSE_S = 0.1
EXISTING = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override this and create"
    " a new partition assignment in addition to the existing one. The --additional flag can also be used to change"
    " the throttle by resubmitting the current reassignment."
)
VERIFY = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is removed."
)


def run(options: Namespace) -> int:
    with open_bootstrap(options) as client:
        return ACTIONS[options.chosen](client, options)


def generate(client: Cluster, options: Namespace) -> int:
    brokers = _broker_ids(options.broker_list)
    topics = read_topics(options.topics_to_move_json_file)
    current = replicas_of(client, topics)
    racks = {each.id: each.rack for each in client.nodes().values() if each.id in brokers}
    without = [each for each in racks.values() if not each]
    if options.disable_rack_aware:
        racks = dict.fromkeys(racks)
    elif without and len(without) != len(racks):
        raise CommandFailed(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica"
            " assignment without rack information."
        )
    chance = random.Random()
    proposed: Assignment = {}
    for topic in dict.fromkeys(topics):
        own = sorted((place.partition, replicas) for place, replicas in current.items() if place.topic == topic)
        placed = place(len(own), len(own[0][1]), racks, chance)
        proposed |= {TopicPartition(topic, index): replicas for index, replicas in enumerate(placed)}
    print(f"Current partition replica assignment\n{_current_json(client, current)}\n")
    print(f"Proposed partition reassignment configuration\n{assignment_json(proposed, {})}")
    return OK


def _broker_ids(text: str) -> list[int]:
    try:
        ids = [int(each) for each in text.split(",")]
    except ValueError:
        raise UsageError(f"{BROKERS}: expected broker ids such as 1,2,3, not {text!r}") from None
    if duplicates(ids):
        raise UsageError(f"Broker list contains duplicate entries: {duplicates(ids)}")
    return ids


def _current_json(client: Cluster, assignment: Assignment) -> str:
    wanted = [Replica(each, *place) for place, replicas in assignment.items() for each in replicas]
    dirs = {replica: each.current for replica, each in log_dirs_of(client, wanted).items() if each.current is not None}
    return assignment_json(assignment, dirs)


def execute(client: Cluster, options: Namespace) -> int:
    plan = read_plan(options.reassignment_json_file)
    proposed = checked(plan)
    active = ongoing(client)
    if active and not options.additional:
        raise CommandFailed(EXISTING)
    unknown = sorted({each for replicas in proposed.values() for each in replicas} - client.nodes().keys())
    if unknown:
        raise CommandFailed(f"Unknown broker id {unknown[0]}")
    known = replicas_of(client, (each.topic for each in proposed))
    missing = sorted(proposed.keys() - known.keys())
    if missing:
        raise CommandFailed(f"Unable to find partition: {', '.join(map(str, missing))}")
    current = {each: known[each] for each in proposed}
    print(f"Current partition replica assignment\n\n{_current_json(client, current)}\n")
    print(f"Save this to use as the {REPLICAS} option during rollback")
    between, inside = (
        NO_RATE if each is None else each for each in (options.throttle, options.replica_alter_log_dirs_throttle)
    )
    if between >= 0 or inside >= 0:
        print(VERIFY)
    if between >= 0:
        throttle_replication(client, moves_of(active, proposed, current), between)
    if inside >= 0:
        throttle_log_dirs(client, {each.broker_id for each in plan.log_dirs}, inside)
    failed = reassign(client, proposed, factor_may_change=not options.disallow_replication_factor_change)
    if failed:
        return _told("Error reassigning partition(s):", failed)
    places = ",".join(map(str, sorted(proposed)))
    print(f"Successfully started partition reassignment{'' if len(proposed) == 1 else 's'} for {places}")
    if plan.log_dirs:
        begin_moves(client, plan.log_dirs, options.moves_timeout_ms)
    return OK


def _told(head: str, failed: Mapping[TopicPartition, str]) -> int:
    """Scripts look for it on standard output."""
    print("\n".join([head, *(f"{each}: {why}" for each, why in sorted(failed.items()))]))
    return FAILED


def begin_moves(client: Cluster, wanted: Mapping[Replica, str], timeout_ms: int) -> None:
    """A replica can only move inside a broker that has it, which takes a while for one that comes from elsewhere."""
    deadline_s = time.monotonic() + timeout_ms / 1_000
    pending = dict(wanted)
    while True:
        for replica in move_log_dirs(client, pending):
            print(
                f"Successfully started moving log directory to {pending.pop(replica)} for replica"
                f" {replica.topic}-{replica.partition} with broker {replica.broker_id} "
            )
        if not pending:
            return
        if time.monotonic() >= deadline_s:
            raise CommandFailed(
                f"Timed out before log directory move{'' if len(pending) == 1 else 's'} could be started for:"
                f" {','.join(map(str, sorted(pending)))}"
            )
        time.sleep(PAUSE_S)


def verify(client: Cluster, options: Namespace) -> int:
    plan = read_plan(options.reassignment_json_file)
    is_reassigning = verify_partitions(client, plan)
    is_moving = verify_log_dirs(client, plan)
    if not (is_reassigning or is_moving or options.preserve_throttles):
        clear_throttles(client, plan)
    return OK


def cancel(client: Cluster, options: Namespace) -> int:
    plan = read_plan(options.reassignment_json_file)
    active = ongoing(client, (each for each, _ in plan.partitions))
    places = sorted(each for each, found in active.items() if found.adding_replicas or found.removing_replicas)
    s = "" if len(places) == 1 else "s"
    if places:
        failed = reassign(client, dict.fromkeys(places))
        if failed:
            head = f"Error cancelling partition reassignment{'' if len(failed) == 1 else 's'} for:"
            return _told(head, failed)
        print(f"Successfully cancelled partition reassignment{s} for: {','.join(map(str, places))}")
    else:
        print("None of the specified partition reassignments are active.")
    moving = active_moves(plan.log_dirs, log_dirs_of(client, plan.log_dirs)) if plan.log_dirs else {}
    if moving:
        begin_moves(client, moving, options.moves_timeout_ms)
    else:
        print("None of the specified partition moves are active.", end="")
    if options.preserve_throttles:
        print(end="\n" if not moving else "")
    else:
        clear_throttles(client, plan)
    return OK


def list_ongoing(client: Cluster, _: Namespace) -> int:
    active = ongoing(client)
    if not active:
        print("No partition reassignments found.")
        return OK
    print("Current partition reassignments:")
    for each, found in sorted(active.items()):
        parts = [f"{each}: replicas: {_ids(found.replicas)}."]
        if found.adding_replicas:
            parts.append(f"adding: {_ids(found.adding_replicas)}.")
        if found.removing_replicas:
            parts.append(f"removing: {_ids(found.removing_replicas)}.")
        print(" ".join(parts))
    return OK


def _ids(ids: list[int]) -> str:
    return ",".join(map(str, ids))


ACTIONS = {
    "--generate": generate,
    "--execute": execute,
    "--verify": verify,
    "--cancel": cancel,
    "--list": list_ongoing,
}
