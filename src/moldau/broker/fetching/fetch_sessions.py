"""Fetch sessions (KIP-227): the broker remembers what a consumer fetches, so that only changes go over the wire.

| session id | epoch | meaning |
|---|---|---|
| 0     | -1  | a full fetch without a session |
| 0     | 0   | a full fetch that asks for a new session |
| id    | -1  | close that session; a full fetch without one |
| id    | 0   | close that session; a full fetch that asks for a new one |
| id    | n   | the n-th incremental fetch of that session |

What a consumer fetches need not exist, so limits bound what is remembered. A session that grows beyond them is closed:
its client begins anew with a full fetch, and fetches without a session where there is no room for one.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Mapping
from typing import TypeAlias

from moldau.core.errors import ErrorCode
from moldau.core.ids import NO_PARTITION_LEADER_EPOCH
from moldau.core.limits import FETCH_SESSION_PARTITIONS_MAX, FETCH_SESSIONS_PARTITIONS_MAX, TOPIC_NAME_CHARS_MAX
from moldau.replication.partition import Partition
from moldau.wire.messages.fetch import FetchPartition, FetchRequest

NO_SESSION = 0
FINAL_EPOCH = -1
INITIAL_EPOCH = 0
INT32_MAX = 2**31 - 1
NEVER_TOLD = -1
TOPIC_IDS_SINCE = 13

# Topics are named by name up to version 12 and by id from then on, and a session never mixes the two.
WantedKey: TypeAlias = "tuple[str | bytes, int]"


class Wanted:
    """One partition that a consumer or a follower fetches: what it asked last, and what it was told last."""

    __slots__ = (
        "bytes_max",
        "index",
        "last_epoch",
        "leader_epoch",
        "offset",
        "partition",
        "start_offset",
        "told_high_watermark",
        "told_log_start_offset",
        "topic",
    )

    def __init__(self, topic: str | bytes, asked: FetchPartition) -> None:
        self.topic = topic
        self.index = asked.partition
        self.partition: Partition | None = None
        self.told_high_watermark = NEVER_TOLD
        self.told_log_start_offset = NEVER_TOLD
        self.leader_epoch = NO_PARTITION_LEADER_EPOCH
        self.ask(asked)

    def ask(self, asked: FetchPartition) -> None:
        self.offset = asked.fetch_offset
        self.bytes_max = asked.partition_max_bytes
        self._ask_in(max(NO_PARTITION_LEADER_EPOCH, asked.current_leader_epoch))
        self.last_epoch = max(NO_PARTITION_LEADER_EPOCH, asked.last_fetched_epoch)
        self.start_offset = asked.log_start_offset  # of a follower's log

    def ask_as(self, other: Wanted) -> None:
        self.offset, self.bytes_max = other.offset, other.bytes_max
        self._ask_in(other.leader_epoch)
        self.last_epoch, self.start_offset = other.last_epoch, other.start_offset

    def _ask_in(self, leader_epoch: int) -> None:
        """A follower drops answers that come after its epoch began: what they told is told anew."""
        if leader_epoch != self.leader_epoch:
            self.leader_epoch = leader_epoch
            self.told_high_watermark = NEVER_TOLD


class FetchSession:
    __slots__ = ("created_ms", "epoch", "id", "is_of_replica", "last_used_ms", "uses_topic_ids", "wanted")

    def __init__(
        self,
        session_id: int,
        wanted: dict[WantedKey, Wanted],
        *,
        uses_topic_ids: bool,
        is_of_replica: bool,
        now_ms: int,
    ) -> None:
        self.id = session_id
        self.is_of_replica = is_of_replica
        self.wanted = wanted
        self.uses_topic_ids = uses_topic_ids
        self.epoch = 1
        self.created_ms = now_ms
        self.last_used_ms = now_ms

    def update(self, request: FetchRequest, asked: Mapping[WantedKey, Wanted] | None) -> None:
        if asked is None:
            self._ask(request)
        else:
            for key, one in asked.items():
                known = self.wanted.setdefault(key, one)
                if known is not one:
                    known.ask_as(one)
        for gone in request.forgotten_topics_data:
            name = gone.topic_id if self.uses_topic_ids else gone.topic
            for index in gone.partitions:
                self.wanted.pop((name, index), None)

    def _ask(self, request: FetchRequest) -> None:
        for topic in request.topics:
            name = topic.topic_id if self.uses_topic_ids else topic.topic
            for asked in topic.partitions:
                known = self.wanted.get((name, asked.partition))
                if known is None:
                    self.wanted[name, asked.partition] = Wanted(name, asked)
                else:
                    known.ask(asked)

    def move_to_end(self, wanted: Wanted) -> None:
        """Let the partitions that gave nothing this time come first next time."""
        key = (wanted.topic, wanted.index)
        if self.wanted.pop(key, None) is wanted:
            self.wanted[key] = wanted


class Plan:
    """What one Fetch request means, once its session was looked up."""

    __slots__ = ("incremental", "opens_session", "session", "wanted")

    def __init__(
        self,
        wanted: dict[WantedKey, Wanted],
        *,
        session: FetchSession | None = None,
        opens_session: bool = False,
    ) -> None:
        self.wanted = wanted
        self.session = session
        self.incremental = session is not None
        self.opens_session = opens_session


class FetchSessions:
    """All sessions of this broker, least recently used first."""

    def __init__(
        self,
        *,
        sessions_max: int,
        eviction_ms_min: int,
        partitions_max: int = FETCH_SESSIONS_PARTITIONS_MAX,
        seed: int | None = None,
    ) -> None:
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        self._sessions_max = sessions_max
        self._partitions = 0  # of all sessions
        self._partitions_max = partitions_max
        self._eviction_ms_min = eviction_ms_min
        self._random = random.Random(seed)

    @property
    def partitions(self) -> int:
        """Of all sessions."""
        return self._partitions

    def __len__(self) -> int:
        return len(self._sessions)

    def plan(
        self, request: FetchRequest, version: int, now_ms: int, asked: dict[WantedKey, Wanted] | None = None
    ) -> Plan | ErrorCode:
        """`asked` is what `wanted_in_full` makes of the request, where that was done before."""
        uses_topic_ids = version >= TOPIC_IDS_SINCE
        if request.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            self._close(request.session_id)
            wants_session = request.session_epoch == INITIAL_EPOCH and version >= 7
            return Plan(
                wanted_in_full(request, uses_topic_ids) if asked is None else asked,
                opens_session=wants_session and _can_be_kept(request, uses_topic_ids),
            )
        session = self._sessions.get(request.session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != request.session_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.uses_topic_ids != uses_topic_ids:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        if not self._update(session, request, asked):
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if not session.wanted:
            self._close(session.id)
            return Plan(wanted_in_full(request, uses_topic_ids) if asked is None else asked)
        session.epoch = 1 if session.epoch == INT32_MAX else session.epoch + 1
        session.last_used_ms = now_ms
        self._sessions.move_to_end(session.id)
        return Plan(session.wanted, session=session)

    def _update(self, session: FetchSession, request: FetchRequest, asked: Mapping[WantedKey, Wanted] | None) -> bool:
        """False when the session grew beyond its limits, and is closed."""
        before = len(session.wanted)
        session.update(request, asked)
        count = len(session.wanted)
        self._partitions += count - before
        is_full = count > FETCH_SESSION_PARTITIONS_MAX or self._partitions > self._partitions_max
        if (is_full and count > before) or not _can_be_kept(request, session.uses_topic_ids):
            self._close(session.id)
            return False
        return True

    def _close(self, session_id: int) -> None:
        closed = self._sessions.pop(session_id, None)
        if closed is not None:
            self._partitions -= len(closed.wanted)

    def open(
        self, wanted: dict[WantedKey, Wanted], *, uses_topic_ids: bool, now_ms: int, is_of_replica: bool = False
    ) -> int:
        """Remember a full fetch; gives the new session's id, or 0 when there is no room for it."""
        size = len(wanted)
        if size > min(FETCH_SESSION_PARTITIONS_MAX, self._partitions_max):
            return NO_SESSION
        while len(self._sessions) >= self._sessions_max or self._partitions + size > self._partitions_max:
            if not self._evict(size, now_ms, is_of_replica):
                return NO_SESSION
        session_id = self._random.randint(1, INT32_MAX)
        while session_id in self._sessions:
            session_id = self._random.randint(1, INT32_MAX)
        self._sessions[session_id] = FetchSession(
            session_id, wanted, uses_topic_ids=uses_topic_ids, is_of_replica=is_of_replica, now_ms=now_ms
        )
        self._partitions += size
        return session_id

    def _evict(self, size: int, now_ms: int, is_for_replica: bool) -> bool:
        """Make room: by a session that nobody used for long, else by an old one that is no larger than the new one.

        A follower goes before all consumers, for the cluster's records wait for it; no consumer goes before a follower.
        """
        oldest_id, oldest = next(iter(self._sessions.items()), (NO_SESSION, None))
        if oldest is None:
            return False
        if now_ms - oldest.last_used_ms > self._eviction_ms_min:
            self._close(oldest_id)
            return True
        consumers = [each for each in self._sessions.values() if not each.is_of_replica]
        if not is_for_replica:
            consumers = [each for each in consumers if now_ms - each.created_ms > self._eviction_ms_min]
        lacks_slot = len(self._sessions) >= self._sessions_max
        if not lacks_slot and not is_for_replica:
            return False  # one large session is not worth many small ones
        chosen = (min if lacks_slot else max)(consumers, key=lambda session: len(session.wanted), default=None)
        if chosen is None or (len(chosen.wanted) > size and not is_for_replica):
            return False
        self._close(chosen.id)
        return True


def _can_be_kept(request: FetchRequest, uses_topic_ids: bool) -> bool:
    """Not names that are longer than any topic's: each may have 32 KB."""
    return uses_topic_ids or all(len(topic.topic) <= TOPIC_NAME_CHARS_MAX for topic in request.topics)


def wanted_in_full(request: FetchRequest, uses_topic_ids: bool) -> dict[WantedKey, Wanted]:
    found: dict[WantedKey, Wanted] = {}
    for topic in request.topics:
        name = topic.topic_id if uses_topic_ids else topic.topic
        for asked in topic.partitions:
            found[name, asked.partition] = Wanted(name, asked)
    return found
