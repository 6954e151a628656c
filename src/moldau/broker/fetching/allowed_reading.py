"""What a client may read of what its Fetch wants; asked anew for each request, also of a session."""

from __future__ import annotations

from collections.abc import Iterable, Set

from moldau.broker.context import Context
from moldau.broker.fetching.fetch_sessions import Wanted
from moldau.broker.fetching.reading import Reading, Terms, find, read, refused
from moldau.broker.rights import CLUSTER, CLUSTER_ACTION, CLUSTER_NAME, READ, TOPIC
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicId


def read_allowed(wanted: Iterable[Wanted], terms: Terms, context: Context) -> Reading:
    """The same as `read`, with an error for each partition of a topic that the client may not read.

    Whoever says that it is a follower needs the right of a broker: it would read what is not committed.
    """
    partitions = context.services.partitions
    everything = list(wanted)
    names = [_name_of(one, context) for one in everything]
    known = [name for name in names if name is not None]
    if terms.replica is None:
        denied: Set[str | None] = {*context.denied(READ, TOPIC, known)}
    else:
        denied = set() if context.may(CLUSTER_ACTION, CLUSTER, CLUSTER_NAME) else set(known)
    if not denied:
        return read(everything, terms, partitions)
    both = list(zip(everything, names, strict=True))
    reading = read([one for one, name in both if name not in denied], terms, partitions)
    rows = [
        (one, refused(one, ErrorCode.TOPIC_AUTHORIZATION_FAILED, None, terms)) for one, name in both if name in denied
    ]
    reading.failed += rows
    if not reading.to_read:  # else they are added when all is read
        reading.found += rows
    return reading


def _name_of(one: Wanted, context: Context) -> str | None:
    """None for an id that is of no topic, which anybody may know."""
    if isinstance(one.topic, str):
        return one.topic
    if one.partition is None:
        one.partition = find(one, context.services.partitions)
    if one.partition is not None:
        return one.partition.topic
    return context.services.controller.image.topic_ids.get(TopicId(one.topic))
