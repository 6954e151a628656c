"""What a client may read of what its Fetch wants; asked anew for each request, also of a session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from moldau.broker.context import Context
from moldau.broker.fetching.fetch_sessions import Wanted
from moldau.broker.fetching.reading import Reading, Terms, find, read, refused
from moldau.broker.rights import CLUSTER, CLUSTER_ACTION, CLUSTER_NAME, READ, TOPIC
from moldau.coordinator.long_work import in_slices
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicId

JUDGED_AT_ONCE_MAX = 2_000  # partitions: a millisecond or two if the authorizer remembers all of their topics


def read_allowed(wanted: Sequence[Wanted], terms: Terms, context: Context) -> Reading | None:
    """The same as `read`, with an error for each partition of a topic that the client may not read.

    Whoever says that it is a follower needs the right of a broker: it would read what is not committed. None where to
    judge them takes long, which is then for `read_allowed_of_many`.
    """
    authorization = context.services.authorization
    assert authorization is not None, "else nobody asks what is allowed"
    if len(wanted) > JUDGED_AT_ONCE_MAX:
        return None
    names = [_name_of(one, context) for one in wanted]
    known = dict.fromkeys([name for name in names if name is not None])
    if terms.replica is not None:
        return _read(wanted, names, _denied_to_follower(known, context), terms, context)
    if authorization.takes_long(context, READ, TOPIC, known):
        return None
    return _read(wanted, names, context.denied(READ, TOPIC, known), terms, context)


async def read_allowed_of_many(wanted: Sequence[Wanted], terms: Terms, context: Context) -> Reading:
    """The same in slices. What is wanted must be a copy, for a session may change meanwhile."""
    long_work = context.services.long_work
    names = [_name_of(one, context) async for one in in_slices(wanted, long_work)]
    known = dict.fromkeys([name for name in names if name is not None])
    if terms.replica is not None:
        return _read(wanted, names, _denied_to_follower(known, context), terms, context)
    denied = {name async for name in in_slices(known, long_work) if not context.may(READ, TOPIC, name)}
    return _read(wanted, names, denied, terms, context)


def _denied_to_follower(names: Iterable[str], context: Context) -> Set[str]:
    return frozenset() if context.may(CLUSTER_ACTION, CLUSTER, CLUSTER_NAME) else {*names}


def _read(
    wanted: Sequence[Wanted], names: Sequence[str | None], denied: Set[str], terms: Terms, context: Context
) -> Reading:
    partitions = context.services.partitions
    if not denied:
        return read(wanted, terms, partitions)
    both = list(zip(wanted, names, strict=True))
    reading = read([one for one, name in both if name not in denied], terms, partitions)
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    rows = [(one, refused(one, error, None, terms)) for one, name in both if name in denied]
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
