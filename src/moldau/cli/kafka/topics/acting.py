"""`moldau topics` with Apache Kafka's options: --list, --create, --delete, --alter and --describe."""

from __future__ import annotations

import sys
from argparse import Namespace

from moldau.cli.failures import OK, CommandFailed, UsageError
from moldau.cli.kafka.topics.matching import existing, names
from moldau.cli.topics.changes import Assignment, Outcomes, create, delete, grow, new_topic
from moldau.cli.wire import open_cluster
from moldau.client.cluster import Cluster
from moldau.core.errors import ErrorCode
from moldau.core.topic_names import may_collide

REPLICATION_FACTOR_MAX = 2**15 - 1
COLLISION = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide."
    " To avoid issues it is best to use either, but not both."
)
DELETE_CONFIG = (
    "delete-config option is no longer supported and deprecated since version 4.0."
    " The config will be fully removed in future releases."
)


def run(options: Namespace) -> int:
    if options.delete_config is not None:
        print(DELETE_CONFIG, file=sys.stderr)
    with open_cluster(options) as cluster:
        act(cluster, options)
    return OK


def act(cluster: Cluster, options: Namespace) -> None:
    match options.action:
        case "list":
            print("\n".join(names(cluster, options)))
        case "create":
            create_topic(cluster, options)
        case "alter":
            alter_topics(cluster, options)
        case "delete":
            delete_topics(cluster, options)
        case _:
            from moldau.cli.kafka.topics.describing import describe_topics

            describe_topics(cluster, options)


def create_topic(cluster: Cluster, options: Namespace) -> None:
    configs = parsed_configs(options.config)
    assignment = parsed_assignment(options.replica_assignment)
    if may_collide(options.topic):
        print(COLLISION)
    factor, partitions = options.replication_factor, options.partitions
    if factor is not None and not 1 <= factor <= REPLICATION_FACTOR_MAX:
        raise UsageError(f"The replication factor must be between 1 and {REPLICATION_FACTOR_MAX} inclusive")
    if partitions is not None and partitions < 1:
        raise UsageError("The partitions must be greater than 0")
    wanted = new_topic(
        options.topic,
        partitions=partitions or -1,
        replication_factor=factor or -1,
        assignment=assignment,
        configs=configs,
    )
    done = create(cluster, [wanted])[options.topic]
    if done.is_fine:
        print(f"Created topic {options.topic}.")
    elif not (done.code == ErrorCode.TOPIC_ALREADY_EXISTS and options.if_not_exists):
        raise CommandFailed(done.told)


def parsed_configs(pairs: list[str]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        parts = [part.strip() for part in pair.rstrip("= ").split("=")]
        if len(parts) != 2:
            raise UsageError('Invalid topic config: all configs to be added must be in the format "key=val".')
        found[parts[0]] = parts[1]
    return found


def parsed_assignment(text: str | None) -> Assignment:
    """`1:2,2:3`: two partitions with two replicas each."""
    found: list[list[int]] = []
    for number, part in enumerate(text.split(",") if text else []):
        try:
            brokers = [int(each) for each in part.split(":")]
        except ValueError:
            raise UsageError(f"--replica-assignment: expected broker ids such as 1:2,2:3, not {text!r}") from None
        twice = sorted({each for each in brokers if brokers.count(each) > 1})
        if twice:
            shown = ",".join(map(str, twice))
            raise UsageError(f"Partition replica lists may not contain duplicate entries: {shown}")
        found.append(brokers)
        if len(brokers) != len(found[0]):
            raise UsageError(f"Partition {number} has different replication factor: {brokers}")
    return found


def alter_topics(cluster: Cluster, options: Namespace) -> None:
    assignment = parsed_assignment(options.replica_assignment)
    found = existing(cluster, options)
    if not found:
        return
    counts = {each.name: len(each.partitions) for each in cluster.metadata(found).topics}
    news = {name: assignment[counts[name] :] if assignment else None for name in found}
    check_all(grow(cluster, options.partitions, news))


def delete_topics(cluster: Cluster, options: Namespace) -> None:
    found = existing(cluster, options)
    if found:
        check_all(delete(cluster, found))


def check_all(outcomes: Outcomes) -> None:
    for each in outcomes.values():
        if not each.is_fine:
            raise CommandFailed(each.told)
