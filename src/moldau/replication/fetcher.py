"""Followers at work: one task for each source broker and fetcher asks the leader there for everything that it leads.

A fetcher has one question under way at a time. What the leader sends is written before the next question, which is how
the leader learns of it. There is no task while there is nothing to follow.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from moldau.core.clock import Clock
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import Offset, TopicId
from moldau.core.repeated_line import RepeatedLine
from moldau.log.partition_log import PartitionLog
from moldau.replication.channel import Channel, ChannelError
from moldau.replication.follower import Follower, Outcome, Position
from moldau.replication.leader_range import ask_ranges
from moldau.replication.leader_session import Key, LeaderSession
from moldau.replication.throttle import Throttle
from moldau.wire.messages.fetch import FetchRequest, FetchResponse, PartitionData, ReplicaState

LOGGER = logging.getLogger(__name__)

FETCH_VERSION = 17
SLICE_S = 0.003  # of writing what came, before the loop does something else
NEWCOMERS_WAIT_MS = 50  # the longest poll of those that wait to join a poll that is under way
FIRST_BACKOFF_MS = 20  # after the first refusal; it doubles up to replica.fetch.backoff.ms
BACKOFF_DOUBLINGS_MAX = 16
THROTTLED_MS = 100  # until a throttled replica looks again whether it may go on

_SESSION_LOST = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)  # fmt: skip


Flush: TypeAlias = Callable[[PartitionLog], Awaitable[None]]
"""Done when all that a log holds is on the disk; raises what was refused."""


class FetchTerms(NamedTuple):
    """The keys `replica.fetch.*` and `replica.socket.timeout.ms`."""

    wait_ms_max: int = 500
    bytes_min: int = 1
    partition_bytes_max: int = 1 << 20
    response_bytes_max: int = 10 << 20
    backoff_ms: int = 1_000
    timeout_ms: int = 30_000


class Identity(NamedTuple):
    """Who asks: the epoch is that of the broker's registration."""

    broker_id: int
    broker_epoch: int


class ReplicaFetcher:
    """Follows partitions that one broker leads, over a channel of its own."""

    def __init__(
        self,
        channel: Callable[[str], Channel],
        purpose: str,
        *,
        whoami: Callable[[], Identity],
        terms: Callable[[], FetchTerms],
        clock: Clock,
        flush: Flush,
        throttle: Throttle | None = None,
        is_for_newcomers: bool = False,
    ) -> None:
        self._channel = channel
        self._purpose = purpose
        self._whoami = whoami
        self._terms = terms
        self._clock = clock
        self._flush = flush
        self._throttle = throttle
        self._is_for_newcomers = is_for_newcomers
        self._newcomers: ReplicaFetcher | None = None
        self._followers: dict[Key, Follower] = {}
        self._session = LeaderSession()
        self._changed: dict[Key, None] = {}  # what the leader may not know of yet, in the order of the changes
        self._held: dict[Key, None] = {}  # what waits, after an error or for a throttle
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._is_polling = False
        self._unanswered, self._refused = (RepeatedLine(LOGGER, logging.WARNING) for _ in range(2))

    def __len__(self) -> int:
        return len(self._followers) + (0 if self._newcomers is None else len(self._newcomers))

    @property
    def max_lag(self) -> int:
        """The most records that a follower lacks."""
        lag = max((follower.lag or 0 for follower in self._followers.values()), default=0)
        return lag if self._newcomers is None else max(lag, self._newcomers.max_lag)

    def add(self, key: Key, follower: Follower) -> None:
        """Follow a partition, in a new epoch if it is followed already.

        While a poll is under way that may last half a second, others ask for it, and hand it over when that is over.
        """
        if self._is_polling and not self._is_for_newcomers and key not in self._followers:
            if self._newcomers is None:
                self._newcomers = ReplicaFetcher(
                    self._channel, f"{self._purpose}-newcomers", whoami=self._whoami, terms=self._terms,
                    clock=self._clock, flush=self._flush, throttle=self._throttle, is_for_newcomers=True,
                )  # fmt: skip
            self._newcomers.add(key, follower)
            return
        if self._newcomers is not None:
            self._newcomers.remove(key)
        self._followers[key] = follower
        self._held.pop(key, None)
        self._changed[key] = None
        self._wake.set()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name=f"replica-{self._purpose}")

    def remove(self, key: Key) -> None:
        if self._followers.pop(key, None) is not None:
            self._held.pop(key, None)
            self._changed[key] = None
        if self._newcomers is not None:
            self._newcomers.remove(key)

    async def stop(self) -> None:
        self._followers.clear()
        self._held.clear()
        if self._newcomers is not None:
            await self._newcomers.stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        try:
            while self._followers or self._take_newcomers():
                self._take_newcomers()
                try:
                    await self._turn()
                except Exception:  # a fault of ours in one partition must not end the replication of all others
                    LOGGER.exception("a fetch from a leader failed (%s); it is tried again", self._purpose)
                    self._session.reset()
                    await self._pause(self._terms().backoff_ms)
        finally:
            self._task = None
            self._session.reset()

    def _take_newcomers(self) -> bool:
        newcomers = self._newcomers
        if newcomers is None or not newcomers._followers:
            return False
        taken, newcomers._followers = newcomers._followers, {}
        newcomers._held.clear()
        newcomers._wake.set()
        self._followers.update(taken)
        self._changed.update(dict.fromkeys(taken))
        return True

    async def _turn(self) -> None:
        terms = self._terms()
        request = self._question(terms)
        if not self._session.known:
            self._session.reset()
            await self._pause(terms.backoff_ms)
            return
        channel = self._channel(self._purpose)
        self._is_polling = True
        try:
            response: FetchResponse = await channel.ask(
                request, FETCH_VERSION, timeout_ms=terms.timeout_ms + terms.wait_ms_max
            )
        except ChannelError as wrong:
            self._unanswered.say(f"no records can be fetched ({self._purpose}): {wrong}")
            response = FetchResponse(error_code=ErrorCode.NETWORK_EXCEPTION)
        finally:
            self._is_polling = False
        if response.error_code != ErrorCode.NONE:
            await self._refuse(ErrorCode(response.error_code), terms)
            return
        self._session.answered(response.session_id)
        await self._take(response, self._session.known, terms, channel)

    async def _refuse(self, error: ErrorCode, terms: FetchTerms) -> None:
        self._session.reset()
        if error not in _SESSION_LOST:
            if error is not ErrorCode.NETWORK_EXCEPTION:
                self._unanswered.say(f"no records can be fetched ({self._purpose}): {error.name}")
            await self._pause(terms.backoff_ms)

    def _question(self, terms: FetchTerms) -> FetchRequest:
        """What changed since the last question, or everything where there is no session."""
        session, elapsed_ms = self._session, _elapsed_ms()
        due = [key for key in self._held if self._followers[key].delayed_until_ms <= elapsed_ms]
        for key in due:
            del self._held[key]
        self._changed.update(dict.fromkeys(due))
        looked_at: Iterable[Key] = self._changed
        if not session.is_open:
            session.known.clear()
            looked_at = [key for key in self._followers if key not in self._held]
        moved: list[tuple[Key, Position]] = []
        gone: list[Key] = []
        for key in looked_at:
            follower = self._followers.get(key)
            if follower is None or key in self._held or not self._may_ask(key, follower):
                gone.append(key)
                continue
            position = follower.position()
            if session.known.get(key) != position:
                moved.append((key, position))
        self._changed.clear()
        request = session.ask(moved, gone, bytes_max=terms.partition_bytes_max)
        whoami = self._whoami()
        request.replica_state = ReplicaState(whoami.broker_id, whoami.broker_epoch)
        request.max_wait_ms = min(terms.wait_ms_max, NEWCOMERS_WAIT_MS) if self._is_for_newcomers else terms.wait_ms_max
        request.min_bytes = terms.bytes_min
        request.max_bytes = terms.response_bytes_max
        return request

    def _may_ask(self, key: Key, follower: Follower) -> bool:
        """Not for one that can't follow any more, and is about to be removed, nor while its throttle holds it back."""
        if not follower.is_current:
            return False
        throttle = self._throttle
        if throttle is None or follower.is_in_sync or not throttle.is_throttled(follower.partition):
            return True
        if not throttle.is_exceeded(_elapsed_ms()):
            return True
        self._hold(key, follower, THROTTLED_MS)
        return False

    def _hold(self, key: Key, follower: Follower, wait_ms: int) -> None:
        """Not a follower that was removed while it wrote, as all in a failed log directory are."""
        if self._followers.get(key) is follower:
            follower.delay(_elapsed_ms() + wait_ms)
            self._held[key] = None

    async def _take(
        self, response: FetchResponse, asked: dict[Key, Position], terms: FetchTerms, channel: Channel
    ) -> None:
        """Write what came, in slices: a partition may have another role by the time that it has its turn."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + SLICE_S
        out_of_range: dict[Key, Follower] = {}
        unsynced: dict[PartitionLog, Offset] = {}
        for key, data in _each(response):
            follower, position = self._followers.get(key), asked.get(key)
            if follower is None or position is None:
                continue
            if self._answered(key, follower, position, data, terms) is Outcome.OUT_OF_RANGE:
                out_of_range[key] = follower
            log = follower.partition.log
            if log.must_flush:
                unsynced[log] = log.end_offset
            if loop.time() >= end_s:
                await asyncio.sleep(0)
                end_s = loop.time() + SLICE_S
        if unsynced:
            await asyncio.gather(*(self._sync(log, end_offset, terms) for log, end_offset in unsynced.items()))
        if out_of_range:
            await self._begin_anew(out_of_range, channel, terms)

    async def _sync(self, log: PartitionLog, end_offset: Offset, terms: FetchTerms) -> None:
        """The next question tells the leader of records as stored: where `flush.messages` asks for it, on the disk."""
        while log.offline is None and not log.is_deleted and log.recovery_point < min(end_offset, log.end_offset):
            try:
                await self._flush(log)
            except (ApiError, OSError) as wrong:
                self._refused.say(f"{log.partition} can't be synced; it is tried again: {wrong}")
                await asyncio.sleep(terms.backoff_ms / 1000)

    def _answered(
        self, key: Key, follower: Follower, asked: Position, data: PartitionData, terms: FetchTerms
    ) -> Outcome:
        outcome = follower.answered(asked, data, now_ms=self._clock.now_ms())
        self._changed[key] = None
        if outcome is Outcome.REFUSED:
            self._note_refusal(key, follower, terms)
        elif self._throttle is not None and data.records and self._throttle.is_throttled(follower.partition):
            self._throttle.record(len(data.records), _elapsed_ms())
        return outcome

    def _note_refusal(self, key: Key, follower: Follower, terms: FetchTerms) -> None:
        """A leader may hear of its election a moment after its followers, who are all waited for meanwhile.

        That is usual for every new topic, so nothing is said before the pauses are as long as they get.
        """
        backoff_ms = min(terms.backoff_ms, FIRST_BACKOFF_MS << min(follower.refusals - 1, BACKOFF_DOUBLINGS_MAX))
        self._hold(key, follower, backoff_ms)
        if backoff_ms == terms.backoff_ms:
            line = f"{follower.partition.log.partition} can't be fetched in epoch {follower.leader_epoch}"
            self._refused.say(f"{line}; it is tried again: {follower.refusal}")

    async def _begin_anew(self, followers: dict[Key, Follower], channel: Channel, terms: FetchTerms) -> None:
        """The leader does not have the offsets that were asked for: see what it has."""
        try:
            ranges = await ask_ranges(
                channel, followers.values(), replica_id=self._whoami().broker_id, timeout_ms=terms.timeout_ms
            )
        except ChannelError as wrong:
            ranges = {}
            self._unanswered.say(f"a leader's offsets can't be asked for ({self._purpose}): {wrong}")
        now_ms = self._clock.now_ms()
        for key, follower in followers.items():
            found = ranges.get(follower)
            if self._followers.get(key) is not follower:
                continue
            outcome = (
                follower.refused(ErrorCode.OFFSET_OUT_OF_RANGE)
                if found is None
                else follower.told_range(found.start_offset, found.end_offset, now_ms=now_ms)
            )
            if outcome is Outcome.REFUSED:
                self._note_refusal(key, follower, terms)

    async def _pause(self, wait_ms: int) -> None:
        """Until there is something new to follow, or what waits has waited enough."""
        now_ms = _elapsed_ms()
        due_ms = min([self._followers[key].delayed_until_ms for key in self._held], default=now_ms + wait_ms)
        self._wake.clear()
        try:
            async with asyncio.timeout(max(1, min(wait_ms, due_ms - now_ms)) / 1000):
                await self._wake.wait()
        except TimeoutError:
            return


def _elapsed_ms() -> int:
    """Of a clock that nobody sets: a pause of some milliseconds must not become one of hours."""
    return int(asyncio.get_running_loop().time() * 1_000)


def _each(response: FetchResponse) -> Iterator[tuple[Key, PartitionData]]:
    for topic in response.responses:
        topic_id = TopicId(topic.topic_id)
        for data in topic.partitions:
            yield (topic_id, data.partition_index), data
