"""The controller at work: decisions become entries of the metadata log, and entries become the next image.

Decisions that arrive while an entry is being written wait and share the next one, each deciding on what the ones before
it decided. No reply is given and no image published before its entry is on disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

from moldau.controller.image import NO_CONTROLLER, ClusterImage, Draft
from moldau.controller.machine import apply_to_draft, decide_create_cluster, snapshot_records
from moldau.controller.records import (
    BrokerRegistered,
    LeadersChanged,
    PartitionsRemoved,
    Record,
    TopicDeleted,
    UnknownRecord,
    decode_records,
    encode_records,
)
from moldau.core.decision import Decision
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.repeated_line import RepeatedLine
from moldau.store.store import START, ControllerAndEpoch, CorruptStore, Fenced, MetadataStore, Registration, StoreError

DECISIONS_PER_ENTRY_MAX = 1_000  # the loop is held while they are decided: some tens of milliseconds
ENTRIES_PER_SNAPSHOT_MIN = 1_000  # reading that many entries at start takes milliseconds
ELECTION_INTERVAL_MS = 1_000  # how often a broker that doesn't control asks whether anyone does
LISTENER_RETRY_MS = 1_000  # after which a listener that failed on an image is told again

# What makes room, and what a start writes: a broker that can't start can't make room either.
WRITTEN_ON_A_FULL_DISK = (TopicDeleted, PartitionsRemoved, BrokerRegistered, LeadersChanged)

R = TypeVar("R")
ImageListener = Callable[[ClusterImage, ClusterImage], None]

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Pending:
    decide: Callable[[ClusterImage], Decision[Any]]
    reply: asyncio.Future[Any]


@dataclass(slots=True, eq=False)
class _Subscription:
    """A listener, and the last image that it followed: one that failed is told of everything since then again."""

    listener: ImageListener
    followed: ClusterImage
    changed_topics: frozenset[str] = frozenset()

    def tell(self, image: ClusterImage) -> None:
        missed = self.changed_topics
        self.changed_topics |= image.changed_topics
        self.listener(self.followed, replace(image, changed_topics=self.changed_topics) if missed else image)
        self.followed, self.changed_topics = image, frozenset()


class Controller:
    """A broker's view of the cluster, and its pen when it is the elected one."""

    def __init__(self, store: MetadataStore, node_id: int) -> None:
        self.image = ClusterImage()
        self._store = store
        self._node_id = node_id
        self._leadership = ControllerAndEpoch(NO_CONTROLLER, 0)
        self._position = START
        self._entries_since_snapshot = 0
        self._bytes_since_snapshot = 0
        self._snapshot_bytes = 0
        self._pending: deque[_Pending] = deque()
        self._writer: asyncio.Task[None] | None = None
        self._standby: asyncio.Task[None] | None = None
        self._subscriptions: list[_Subscription] = []
        self._retry: asyncio.TimerHandle | None = None
        self._unwritten, self._unread, self._unshortened = (RepeatedLine(LOGGER, logging.ERROR) for _ in range(3))

    @classmethod
    async def open(cls, store: MetadataStore, node_id: int, *, cluster_id: str) -> Self:
        """Reads the log and takes part in the election. A store of another cluster is refused."""
        controller = cls(store, node_id)
        await store.register(Registration(node_id, b""))
        await controller._take_part()
        known = controller.image.cluster_id
        if controller.is_active:
            known = await controller.write(lambda image: decide_create_cluster(image, cluster_id))
        if known != cluster_id:
            await controller.close()
            raise StoreError(f"the metadata store belongs to cluster {known}, the log directory to {cluster_id}")
        return controller

    @classmethod
    async def stored_cluster_id(cls, store: MetadataStore) -> str:
        """Whose a store is, without taking part in anything; empty for a new one."""
        reader = cls(store, NO_CONTROLLER)
        await reader._catch_up(NO_CONTROLLER)
        return reader.image.cluster_id

    @property
    def is_active(self) -> bool:
        return self._leadership.broker_id == self._node_id

    @property
    def epoch(self) -> int:
        """Of the controller that this broker knows of."""
        return self._leadership.epoch

    @property
    def position(self) -> int:
        """Of the last entry of the metadata log that this broker has applied."""
        return self._position

    def subscribe(self, listener: ImageListener) -> Callable[[], None]:
        """`listener(old, new)` for every image from now on, before the replies that it answers; returns the way out.

        `old` is the last image that the listener followed without an exception.
        """
        subscription = _Subscription(listener, self.image)
        self._subscriptions.append(subscription)
        return lambda: self._subscriptions.remove(subscription)

    async def write(self, decide: Callable[[ClusterImage], Decision[R]]) -> R:
        """The reply of a decision, once its records are committed and applied."""
        if not self.is_active:
            raise ApiError(ErrorCode.NOT_CONTROLLER)
        pending = _Pending(decide, asyncio.get_running_loop().create_future())
        self._pending.append(pending)
        if self._writer is None:
            self._writer = asyncio.create_task(self._write_pending(), name="controller-writer")
        reply: R = await pending.reply
        return reply

    async def settled(self) -> None:
        """Wait until what was decided is committed and everybody was told, or could not be."""
        if self._writer is not None:
            await asyncio.shield(self._writer)

    async def close(self) -> None:
        """Finishes what is pending, leaves a snapshot for a quick start and lets another broker take over."""
        if self._retry is not None:
            self._retry.cancel()
        if self._standby is not None:
            self._standby.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._standby
        await self.settled()
        if self.is_active:
            with contextlib.suppress(StoreError):
                if self._entries_since_snapshot:
                    await self._take_snapshot()
                await self._store.resign(self._leadership)

    async def _write_pending(self) -> None:
        try:
            while self._pending:
                count = min(len(self._pending), DECISIONS_PER_ENTRY_MAX)
                await self._write([self._pending.popleft() for _ in range(count)])
        finally:
            self._writer = None

    async def _write(self, batch: list[_Pending]) -> None:
        """One entry for the batch. Whatever goes wrong, every reply of it is given."""
        draft = Draft(self.image)
        replies: list[tuple[asyncio.Future[Any], Any]] = []
        try:
            records = [record for pending in batch for record in self._decide(pending, draft, replies)]
        except Exception as wrong:
            await self._write_apart(batch, wrong)
            return
        try:
            if records:
                await self._commit(records, draft)
        except StoreError as wrong:
            self._fail([reply for reply, _ in replies], wrong)
        except Exception as wrong:
            LOGGER.exception("records of the controller can't be written")
            _refuse([reply for reply, _ in replies], _unexpected(wrong))
        else:
            for future, reply in replies:
                if not future.done():
                    future.set_result(reply)

    async def _write_apart(self, batch: list[_Pending], wrong: Exception) -> None:
        """Records of one decision can't be applied: it fails, and the draft with it, but the others need not."""
        if len(batch) == 1:
            LOGGER.error("a decision of the controller can't be applied", exc_info=wrong)
            _refuse([batch[0].reply], _unexpected(wrong))
            return
        for pending in batch:
            await self._write([pending])

    def _decide(
        self, pending: _Pending, draft: Draft, replies: list[tuple[asyncio.Future[Any], Any]]
    ) -> Sequence[Record]:
        """The records of a decision, which the draft has taken."""
        if pending.reply.done():
            return ()  # its caller gave up before anything was decided, or was refused alone
        try:
            decision = pending.decide(draft.image)
        except Exception as wrong:
            pending.reply.set_exception(wrong)
            return ()
        apply_to_draft(draft, decision.records)
        replies.append((pending.reply, decision.reply))
        return decision.records

    async def _commit(self, records: list[Record], draft: Draft) -> None:
        if not self.is_active:
            raise Fenced("another controller was elected")
        payload = encode_records(records)
        may_take_reserve = any(isinstance(record, WRITTEN_ON_A_FULL_DISK) for record in records)
        self._position = await self._store.append(
            payload, controller_epoch=self._leadership.epoch, may_take_reserve=may_take_reserve
        )
        self._count(payload)
        self._publish(draft.finish())
        if self._snapshot_is_due():
            try:
                await self._take_snapshot()
            except Fenced:
                raise
            except Exception as wrong:
                # The entry is committed, and the replies must say so; the next one tries the snapshot again.
                self._unshortened.say(f"the metadata log could not be shortened: {wrong}")

    def _fail(self, replies: list[asyncio.Future[Any]], wrong: StoreError) -> None:
        self._unwritten.say(f"metadata can't be changed: {wrong}")
        fenced = isinstance(wrong, Fenced)
        error = ApiError(ErrorCode.NOT_CONTROLLER if fenced else ErrorCode.KAFKA_STORAGE_ERROR, str(wrong))
        if fenced:
            self._leadership = ControllerAndEpoch(NO_CONTROLLER, self._leadership.epoch)
            self._stand_by()
        _refuse(replies, error)

    def _publish(self, image: ClusterImage) -> None:
        self.image = image
        self._tell(self._subscriptions)

    def _tell(self, subscriptions: list[_Subscription]) -> None:
        """The entry is committed, so everybody must learn of it, whatever one of them does."""
        for subscription in tuple(subscriptions):
            try:
                subscription.tell(self.image)
            except Exception:
                LOGGER.exception("a listener failed on a new image; it is told again")
                self._tell_again_later()

    def _tell_again_later(self) -> None:
        if self._retry is None:
            self._retry = asyncio.get_running_loop().call_later(LISTENER_RETRY_MS / 1000, self._tell_again)

    def _tell_again(self) -> None:
        self._retry = None
        self._tell([each for each in self._subscriptions if each.followed is not self.image])

    def _count(self, payload: bytes) -> None:
        self._entries_since_snapshot += 1
        self._bytes_since_snapshot += len(payload)

    def _snapshot_is_due(self) -> bool:
        """Only when as much was added as a snapshot costs, so that all snapshots together cost no more than appends."""
        return (
            self._entries_since_snapshot >= ENTRIES_PER_SNAPSHOT_MIN
            and self._bytes_since_snapshot >= self._snapshot_bytes
        )

    async def _take_snapshot(self) -> None:
        payload = encode_records(snapshot_records(self.image))
        await self._store.snapshot(payload, position=self._position, controller_epoch=self._leadership.epoch)
        self._entries_since_snapshot = self._bytes_since_snapshot = 0
        self._snapshot_bytes = len(payload)

    async def _take_part(self) -> None:
        """One look at the election. Whoever wins it has read everything up to the last entry of the epoch before."""
        leadership = await self._store.elect(self._node_id)
        await self._catch_up(leadership.broker_id)
        self._leadership = leadership
        if not self.is_active:
            self._stand_by()

    async def _catch_up(self, controller_id: int) -> None:
        tail = await self._store.read(self._position)
        if tail.end is None and self.image.controller_id == controller_id:
            return
        draft = Draft(ClusterImage() if tail.snapshot else self.image)
        try:
            if tail.snapshot:
                apply_to_draft(draft, decode_records(tail.snapshot.payload))
                self._snapshot_bytes = len(tail.snapshot.payload)
            for entry in tail.entries:
                apply_to_draft(draft, decode_records(entry.payload))
                self._count(entry.payload)
        except UnknownRecord as wrong:
            raise CorruptStore(str(wrong)) from wrong
        except Exception as wrong:
            raise CorruptStore(f"the metadata log can't be applied: {wrong!r}") from wrong
        self._position = tail.end or self._position
        self._publish(replace(draft.finish(), controller_id=controller_id))

    def _stand_by(self) -> None:
        if self._standby is None:
            self._standby = asyncio.create_task(self._follow(), name="controller-standby")

    async def _follow(self) -> None:
        """Reads what the controller writes, until there is none and this broker becomes it."""
        try:
            while not self.is_active:
                try:
                    await self._take_part()
                    await self._tail_for(ELECTION_INTERVAL_MS)
                except StoreError as wrong:
                    self._unread.say(f"metadata can't be read: {wrong}")
                    await asyncio.sleep(ELECTION_INTERVAL_MS / 1000)
        finally:
            self._standby = None

    async def _tail_for(self, duration_ms: int) -> None:
        """Applies new entries as they come, for a while."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0 if self.is_active else duration_ms / 1000):
                async for _ in self._store.watch(self._position):
                    # An image must not be abandoned half way, so the time-out waits for it.
                    await asyncio.shield(self._catch_up(self._leadership.broker_id))


def _refuse(replies: list[asyncio.Future[Any]], error: ApiError) -> None:
    for reply in replies:
        if not reply.done():
            reply.set_exception(error)


def _unexpected(wrong: Exception) -> ApiError:
    return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, repr(wrong))
