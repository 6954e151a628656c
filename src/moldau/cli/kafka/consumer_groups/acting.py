"""`moldau consumer-groups`: what kafka-consumer-groups.sh does, with its options, columns and lines."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.failures import FAILED, OK
from moldau.cli.kafka.consumer_groups.deleting import delete_groups_of, delete_offsets_of
from moldau.cli.kafka.consumer_groups.describing import NoConsumerGroup, describe
from moldau.cli.kafka.consumer_groups.listing import list_consumer_groups
from moldau.cli.kafka.consumer_groups.printing import print_error
from moldau.cli.kafka.consumer_groups.resetting import reset
from moldau.cli.kafka.exceptions import thrown
from moldau.cli.wire import open_cluster
from moldau.client.cluster import Cluster, Refused


def run(options: Namespace) -> int:
    if options.validate_regex is not None:
        return validate_regex(options.validate_regex)
    with open_cluster(options) as cluster:
        try:
            return act(cluster, options)
        except (Refused, NoConsumerGroup) as wrong:
            told = thrown(wrong.code, str(wrong)) if isinstance(wrong, Refused) else wrong
            print_error(f"Executing consumer group command failed due to {told}")
            return FAILED


def act(cluster: Cluster, options: Namespace) -> int:
    if options.list:
        return list_consumer_groups(cluster, options)
    if options.describe:
        return describe(cluster, options)
    if options.delete:
        return delete_groups_of(cluster, options)
    if options.delete_offsets:
        return delete_offsets_of(cluster, options)
    return reset(cluster, options)


def validate_regex(text: str) -> int:
    from moldau.core.patterns import InvalidPattern, compile_pattern

    try:
        compile_pattern(text)
    except InvalidPattern as wrong:
        print(f"The regular expression `{text}` is invalid: {wrong}.")
        return FAILED
    print(f"The regular expression `{text}` is valid.")
    return OK
