"""`moldau topics alter`: more partitions, and other configs."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.connection import split_pair
from moldau.cli.failures import OK, CommandFailed, UsageError
from moldau.cli.output import Change, print_changes
from moldau.cli.questions import ask
from moldau.cli.topics.changes import grow
from moldau.cli.topics.configs import Kind, alter, deleted, entries, set_to
from moldau.cli.topics.failures import existing_topic, problem_of
from moldau.cli.topics.keys import have_keys
from moldau.cli.topics.leaders import EARLIEST, LATEST, offsets_at
from moldau.cli.wire import open_cluster
from moldau.client.cluster import Cluster
from moldau.core.ids import TopicPartition
from moldau.wire.messages.metadata import MetadataResponseTopic

CLEANUP_POLICY = "cleanup.policy"
COMPACT = "compact"


def alter_topic(options: Namespace) -> int:
    configs = dict(split_pair(pair, option="--config") for pair in options.config)
    gone = list(dict.fromkeys(options.delete_config))
    if options.partitions is None and not configs and not gone:
        raise UsageError("what shall be altered? There are --partitions, --config and --delete-config")
    with open_cluster(options) as cluster:
        topic = existing_topic(cluster, options.topic)
        if options.partitions is not None:
            grow_topic(cluster, topic, options)
        if configs or gone:
            changes = [*(set_to(key, value) for key, value in configs.items()), *map(deleted, gone)]
            alter(cluster, Kind.TOPIC, options.topic, changes)
    done = [f"partitions={options.partitions}"] if options.partitions is not None else []
    done += [f"{key}={value}" for key, value in configs.items()]
    line = " ".join([f"altered {options.topic}", *done, *(f"{key}=default" for key in gone)])
    row = {"topic": options.topic, "done": "altered", "partitions": options.partitions}
    row["configs"] = {**configs, **dict.fromkeys(gone)}
    print_changes([Change(row, line)], output=options.output)
    return OK


def grow_topic(cluster: Cluster, topic: MetadataResponseTopic, options: Namespace) -> None:
    count = len(topic.partitions)
    if options.partitions <= count:
        raise CommandFailed(
            f"topic {options.topic!r} has {count} partition{'s' if count > 1 else ''}; it can only get more"
        )
    question = question_of(cluster, topic, options)
    if question:
        ask(question, yes=options.yes)
    outcome = grow(cluster, options.partitions, {options.topic: None})[options.topic]
    if not outcome.is_fine:
        raise CommandFailed(problem_of(options.topic, outcome))


def question_of(cluster: Cluster, topic: MetadataResponseTopic, options: Namespace) -> str | None:
    """None where nothing is at stake."""
    if topic.is_internal:
        return (
            f"groups and transactions are found by the number of partitions of {options.topic}: with"
            f" {options.partitions} many lose what they committed or their state; add them?"
        )
    why = why_keys_move(cluster, topic, options)
    if why is None:
        return None
    return (
        f"{why}, so with {options.partitions} partitions new records go to others than older ones of the same key;"
        " add them?"
    )


def why_keys_move(cluster: Cluster, topic: MetadataResponseTopic, options: Namespace) -> str | None:
    """What says that records of this topic have keys; None if nothing does."""
    values = {each.name: each.value or "" for each in entries(cluster, Kind.TOPIC, options.topic)}
    if COMPACT in values.get(CLEANUP_POLICY, "").split(","):
        return f"{options.topic} is compacted"
    places = [TopicPartition(options.topic, each.partition_index) for each in topic.partitions]
    starts, ends = (offsets_at(cluster, places, at) for at in (EARLIEST, LATEST))
    filled = {place: ends[place].offset for place in places if ends[place].offset > starts[place].offset}
    return f"records of {options.topic} have keys" if have_keys(cluster, topic, filled) else None
