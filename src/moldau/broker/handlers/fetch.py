"""Fetch, v4 to v18: read from partitions, waiting for enough to read.

v7 brings sessions, v9 the leader epoch a client believes in, v11 its rack, by which it may be sent to a nearer replica
(KIP-392), v12 the compact encoding and where histories part, v13 topics by id, v15 a follower's broker epoch, v16 who
leads instead.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine, Iterable, Sequence, Set
from typing import TYPE_CHECKING, Any, TypeVar

from moldau.broker.api import Answer, api
from moldau.broker.context import Context, Services
from moldau.broker.fetching.delayed_fetch import DelayedFetch
from moldau.broker.fetching.fetch_sessions import NEVER_TOLD, NO_SESSION, TOPIC_IDS_SINCE, Plan, Wanted, wanted_in_full
from moldau.broker.fetching.reading import (
    ANY_REPLICA_SINCE,
    Reading,
    Terms,
    is_sent_elsewhere,
    read,
    read_rest,
    worth_a_look,
)
from moldau.broker.leaders import node_endpoints
from moldau.broker.requests.answers import Encoded, encoded, in_thread
from moldau.broker.requests.delayed_response import DelayedResponse, future_of
from moldau.broker.rights import CLUSTER, CLUSTER_ACTION, CLUSTER_NAME
from moldau.coordinator.long_work import in_slices
from moldau.core.errors import ErrorCode
from moldau.log.file_range import FileRange
from moldau.replication.partition import Partition
from moldau.replication.watcher import Watchers
from moldau.wire.api import ApiKey
from moldau.wire.messages import FetchRequest, FetchResponse
from moldau.wire.messages.fetch import FetchableTopicResponse, PartitionData

if TYPE_CHECKING:
    from moldau.broker.fetching.replica_reading import ReplicaFetch

READ_COMMITTED = 1
MANY = 2_000  # partitions: to plan them, and to tell what was found, takes so long that others want their turn

R = TypeVar("R")


@api(ApiKey.FETCH, FetchRequest, versions=(4, 18))
def fetch(request: FetchRequest, context: Context) -> Answer:
    services, version = context.services, context.version
    topics = request.topics
    if topics and (len(topics) > 1 or len(topics[0].partitions) > MANY) and _asks_for_many(request):
        return context.start(_plan_many(request, context))
    plan = services.fetch_sessions.plan(request, version, services.clock.elapsed_ms())
    if isinstance(plan, ErrorCode):
        return FetchResponse(error_code=plan)
    terms = _terms(request, plan, context)
    if services.authorization is None:
        reading = read(plan.wanted.values(), terms, services.partitions)
    else:
        allowed = services.authorization.read([*plan.wanted.values()], terms, context)
        if allowed is None:
            return context.start(_judge_many(request, plan, terms, context))
        reading = allowed
    if reading.to_read or len(plan.wanted) > MANY:
        wanted = list(plan.wanted.values())
        return context.start(_fetch_many(request, plan, wanted, reading, terms=terms, context=context))
    if request.max_wait_ms <= 0 or reading.size_bytes >= terms.bytes_min or reading.must_be_told or not plan.wanted:
        response = _answer(plan, reading, terms, context)
        return response if reading.size_bytes == 0 else _from_cache(response, reading, services)
    return _delay(request, plan, reading, terms=terms, context=context)


def _terms(request: FetchRequest, plan: Plan, context: Context) -> Terms:
    services = context.services
    bytes_max = min(request.max_bytes, services.config.int("fetch.max.bytes"))
    replica_id, nearer_replica = max(request.replica_id, request.replica_state.replica_id), None
    quota = None
    if services.quotas is not None:
        # Anybody can write a replica's number. Reading asks for the same right, and writes the line of the audit log.
        if replica_id >= 0 and context.may(CLUSTER_ACTION, CLUSTER, CLUSTER_NAME, is_audited=False):
            context.exempt()
        elif (quota := services.quotas.fetching(context)) is not None:
            bytes_max = min(bytes_max, quota.bytes_max)
    if request.rack_id and context.version >= ANY_REPLICA_SINCE:
        nearer_replica = services.replication.nearer_replica(request.rack_id, context.peer.listener_name)
    return Terms(
        version=context.version,
        bytes_max=bytes_max,
        bytes_min=min(request.min_bytes, bytes_max),
        read_committed=request.isolation_level == READ_COMMITTED,
        changes_only=plan.incremental and nearer_replica is None,
        replica=None if replica_id < 0 else _replica(replica_id, request, services),
        nearer_replica=nearer_replica,
        quota=quota,
    )


def _replica(replica_id: int, request: FetchRequest, services: Services) -> ReplicaFetch:
    from moldau.broker.fetching.replica_reading import ReplicaFetch  # a broker that is alone has no followers

    epoch = request.replica_state.replica_epoch
    registered = services.controller.image.brokers.get(replica_id)
    return ReplicaFetch(
        replica_id,
        epoch,
        now_ms=services.clock.elapsed_ms(),
        is_stale=registered is not None and -1 < epoch < registered.epoch,
        change_isr=services.replication.change_isr,
        throttle=services.replication.sending,
    )


def _watched(wanted: Iterable[Wanted], terms: Terms) -> list[Watchers]:
    """Those who wait for what this fetch may read: a consumer for what is committed, a follower for all."""
    partitions = [one.partition for one in wanted if one.partition is not None]
    if terms.replica is None:
        return [partition.commit_watchers for partition in partitions]
    return [partition.replicas.watchers for partition in partitions if partition.replicas is not None]


def _from_cache(response: R, reading: Reading, services: Services) -> R | DelayedResponse[R]:
    """As soon as sending it makes nobody wait for the disk."""
    ranges = [(one.partition, data.records) for one, data in reading.found if isinstance(data.records, FileRange)]
    return services.cold_reads.response(response, ranges)


def _delay(
    request: FetchRequest, plan: Plan, reading: Reading, *, terms: Terms, context: Context
) -> DelayedResponse[FetchResponse]:
    told = {one for one, _ in reading.found}
    terms = terms.again()
    services, authorization = context.services, context.services.authorization
    # Others of the same session may add to it what this one was never judged for.
    everything = plan.wanted.values() if authorization is None else [*plan.wanted.values()]

    def attempt(is_last: bool, grown: Set[Partition] | None) -> Answer:
        wanted: Iterable[Wanted] = everything
        if grown is not None and terms.changes_only:
            wanted = worth_a_look(wanted, told, grown)
        again: Reading | None
        if authorization is None:
            again = read(wanted, terms, services.partitions)
        else:
            wanted = [*wanted]
            again = authorization.read(wanted, terms, context)
            if again is None:
                return _later(_judge_and_finish(wanted, plan, terms, context), context)
        if again.to_read:  # so much that it takes long: no need to count whether it is enough
            return _later(_finish(plan, again, terms, context), context)
        if not (is_last or again.must_be_told or again.size_bytes >= terms.bytes_min):
            return None
        response = _answer(plan, again, terms, context)
        # What came after the first look is in the page cache.
        return response if reading.size_bytes == 0 else _from_cache(response, again, services)

    watched = _watched(plan.wanted.values(), terms)
    missing_bytes = terms.bytes_min - reading.size_bytes
    return DelayedFetch(watched, attempt, missing_bytes=missing_bytes, wait_ms_max=request.max_wait_ms).answer


def _later(
    finishing: Coroutine[Any, Any, FetchResponse | Encoded[FetchResponse]], context: Context
) -> DelayedResponse[FetchResponse | Encoded[FetchResponse]]:
    later: DelayedResponse[FetchResponse | Encoded[FetchResponse]] = DelayedResponse()
    later.follow(context.start(finishing))
    return later


def _asks_for_many(request: FetchRequest) -> bool:
    return sum([1 + len(topic.partitions) for topic in request.topics]) > MANY


async def _plan_many(request: FetchRequest, context: Context) -> FetchResponse | Encoded[FetchResponse]:
    services, version = context.services, context.version
    asked = await in_thread(lambda: wanted_in_full(request, version >= TOPIC_IDS_SINCE), context)
    plan = services.fetch_sessions.plan(request, version, services.clock.elapsed_ms(), asked)
    if isinstance(plan, ErrorCode):
        return FetchResponse(error_code=plan)
    terms = _terms(request, plan, context)
    if services.authorization is not None:
        return await _judge_many(request, plan, terms, context)
    wanted = list(plan.wanted.values())
    reading = read(wanted, terms, services.partitions)
    return await _fetch_many(request, plan, wanted, reading, terms=terms, context=context)


async def _judge_many(
    request: FetchRequest, plan: Plan, terms: Terms, context: Context
) -> FetchResponse | Encoded[FetchResponse]:
    authorization = context.services.authorization
    assert authorization is not None, "there is somebody to judge them"
    wanted = list(plan.wanted.values())
    reading = await authorization.read_many(wanted, terms, context)
    return await _fetch_many(request, plan, wanted, reading, terms=terms, context=context)


async def _fetch_many(
    request: FetchRequest, plan: Plan, wanted: list[Wanted], reading: Reading, *, terms: Terms, context: Context
) -> FetchResponse | Encoded[FetchResponse]:
    """The same in slices. Others of the same session may change what is wanted in between, so a copy is read."""
    services, authorization = context.services, context.services.authorization
    await read_rest(reading, terms, services.partitions, services.long_work)
    terms = terms.again()
    told = {one for one, _ in reading.found}
    end_s = asyncio.get_running_loop().time() + request.max_wait_ms / 1000

    async def look(grown: Set[Partition] | None) -> Reading:
        some = worth_a_look(wanted, told, grown) if terms.changes_only and grown is not None else wanted
        if authorization is None:
            reading = read(some, terms, services.partitions)
        else:  # a right may have been taken away meanwhile
            reading = await authorization.read_many(some, terms, context)
        await read_rest(reading, terms, services.partitions, services.long_work)
        told.update([one for one, _ in reading.found])
        return reading

    def is_enough(reading: Reading) -> bool:
        return reading.size_bytes >= terms.bytes_min or reading.must_be_told

    is_last, grown = request.max_wait_ms <= 0, None
    while not (is_last or is_enough(reading)):
        before_bytes = reading.size_bytes
        watch = _watch(_watched(wanted, terms), end_s, terms.bytes_min - before_bytes)
        try:
            reading = await look(grown)  # for it may have grown before it was watched
            if is_enough(reading):
                break
            watch.came_before(reading.size_bytes - before_bytes)
            is_last, grown = await future_of(watch.answer)
            reading = await look(None) if is_last else reading
        finally:
            watch.answer.cancel()
    return await _finish(plan, reading, terms, context)


async def _judge_and_finish(
    wanted: Sequence[Wanted], plan: Plan, terms: Terms, context: Context
) -> FetchResponse | Encoded[FetchResponse]:
    authorization = context.services.authorization
    assert authorization is not None, "there is somebody to judge them"
    return await _finish(plan, await authorization.read_many(wanted, terms, context), terms, context)


async def _finish(
    plan: Plan, reading: Reading, terms: Terms, context: Context
) -> FetchResponse | Encoded[FetchResponse]:
    services = context.services
    await read_rest(reading, terms, services.partitions, services.long_work)
    response = await _answer_many(plan, reading, terms, context)
    ready = _from_cache(response, reading, services)
    return await future_of(ready) if isinstance(ready, DelayedResponse) else ready


def _watch(watched: list[Watchers], end_s: float, missing_bytes: int) -> DelayedFetch:
    """Tells when enough came or something else changed, with the partitions that grew, or that the time is over."""
    wait_s = max(0.0, end_s - asyncio.get_running_loop().time())
    return DelayedFetch(
        watched,
        lambda is_last, grown: (is_last, grown),
        missing_bytes=missing_bytes,
        wait_ms_max=math.ceil(wait_s * 1000),
    )


async def _answer_many(
    plan: Plan, reading: Reading, terms: Terms, context: Context
) -> FetchResponse | Encoded[FetchResponse]:
    if terms.quota is not None and (throttle_ms := terms.quota.throttle_ms(reading.size_bytes)):
        return _throttled(plan, reading, throttle_ms)
    services, session_id, found = context.services, NO_SESSION, reading.found
    if plan.session is not None:
        session_id = plan.session.id
        found = [pair async for pair in in_slices(found, services.long_work) if _is_news(*pair, plan)]
    elif plan.opens_session:
        session_id = _open_session(plan, terms, context)
        async for one, data in in_slices(found, services.long_work):
            _note_told(one, data)
    return await encoded(lambda: _response(session_id, found, reading, context), context)


def _open_session(plan: Plan, terms: Terms, context: Context) -> int:
    return context.services.fetch_sessions.open(
        plan.wanted,
        uses_topic_ids=context.version >= TOPIC_IDS_SINCE,
        is_of_replica=terms.replica is not None,
        now_ms=context.services.clock.elapsed_ms(),
    )


def _throttled(plan: Plan, reading: Reading, throttle_ms: int) -> FetchResponse:
    """Nothing but for how long to pause. The session is as it was, and none is opened."""
    reading.found.clear()
    session_id = NO_SESSION if plan.session is None else plan.session.id
    return FetchResponse(throttle_time_ms=throttle_ms, session_id=session_id)


def _answer(plan: Plan, reading: Reading, terms: Terms, context: Context) -> FetchResponse:
    if terms.quota is not None and (throttle_ms := terms.quota.throttle_ms(reading.size_bytes)):
        return _throttled(plan, reading, throttle_ms)
    found = reading.found
    session_id = NO_SESSION
    if plan.session is not None:
        session_id = plan.session.id
        found = [(one, data) for one, data in found if _is_news(one, data, plan)]
    elif plan.opens_session:
        session_id = _open_session(plan, terms, context)
        for one, data in found:
            _note_told(one, data)
    return _response(session_id, found, reading, context)


def _response(
    session_id: int, found: list[tuple[Wanted, PartitionData]], reading: Reading, context: Context
) -> FetchResponse:
    response = FetchResponse(session_id=session_id, responses=_by_topic(found))
    if reading.has_error and context.version >= 16:
        moved = {data.current_leader.leader_id for _, data in found if data.current_leader.leader_id >= 0}
        image = context.services.controller.image
        response.node_endpoints = node_endpoints(image, moved, context.peer.listener_name)
    return response


def _is_news(one: Wanted, data: PartitionData, plan: Plan) -> bool:
    """Whether an incremental reply must name this partition; what it tells is remembered."""
    has_records = data.records is not None and len(data.records) > 0
    has_error = data.error_code != ErrorCode.NONE
    news = (
        has_records
        or has_error
        or data.high_watermark != one.told_high_watermark
        or data.log_start_offset != one.told_log_start_offset
        or is_sent_elsewhere(data)
    )
    _note_told(one, data)
    if has_records and plan.session is not None:
        plan.session.move_to_end(one)
    return news


def _note_told(one: Wanted, data: PartitionData) -> None:
    """A reader takes nothing else from an answer with an error, or that sends it elsewhere: all of it is told anew.

    A follower that truncates its log takes the high watermark of the next answer, once the histories agree.
    """
    is_taken = data.error_code == ErrorCode.NONE and not is_sent_elsewhere(data)
    one.told_high_watermark = data.high_watermark if is_taken else NEVER_TOLD
    one.told_log_start_offset = data.log_start_offset


def _by_topic(found: list[tuple[Wanted, PartitionData]]) -> list[FetchableTopicResponse]:
    """Neighbours of the same topic share a row, so that order is kept."""
    rows: list[FetchableTopicResponse] = []
    current: str | bytes | None = None
    for one, data in found:
        if one.topic != current:
            current = one.topic
            named = {"topic": current} if isinstance(current, str) else {"topic_id": current}
            rows.append(FetchableTopicResponse(**named, partitions=[]))
        rows[-1].partitions.append(data)
    return rows
