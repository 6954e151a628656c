"""The topics that the options name."""

from __future__ import annotations

from argparse import Namespace

from moldau.cli.failures import CommandFailed
from moldau.cli.kafka.filters import allowed
from moldau.client.cluster import Cluster


def names(cluster: Cluster, options: Namespace) -> list[str]:
    """Of the topics that are meant, in order."""
    found = cluster.metadata().topics
    known = sorted(each.name or "" for each in found if not (options.exclude_internal and each.is_internal))
    return allowed(known, options.topic, exclude_internal=options.exclude_internal)


def existing(cluster: Cluster, options: Namespace) -> list[str]:
    """The same, when a name that fits none is an error unless it may be missing."""
    found = names(cluster, options)
    if options.topic and not found and not options.if_exists:
        raise CommandFailed(f"Topic '{options.topic}' does not exist as expected")
    return found
