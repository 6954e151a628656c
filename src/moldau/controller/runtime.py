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
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

from moldau.controller.candidacy import NOBODY, Candidacy
from moldau.controller.image import NO_CONTROLLER, ClusterImage, Draft
from moldau.controller.log_length import LogLength
from moldau.controller.machine import apply_to_draft, decide_create_cluster, snapshot_records
from moldau.controller.pending import Pending, refuse, unexpected
from moldau.controller.records import (
    BrokerRegistered,
    LeadersChanged,
    PartitionsChanged,
    PartitionsRemoved,
    Record,
    TopicDeleted,
    encode_in_slices,
    encode_records,
)
from moldau.controller.subscriptions import ImageListener, Subscriptions, first_of
from moldau.controller.tail import apply_tail
from moldau.core.config.broker import BrokerConfig
from moldau.core.decision import Decision
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.repeated_line import RepeatedLine
from moldau.store.store import (
    START,
    ControllerAndEpoch,
    Fenced,
    MetadataStore,
    Registration,
    StoreError,
    Tail,
)

if TYPE_CHECKING:
    from moldau.controller.duties import Duties

DECISIONS_PER_ENTRY_MAX = 1_000  # the loop is held while they are decided: some tens of milliseconds
STORE_RETRY_MS = 1_000  # after which a store that failed is tried again

# What makes room, what a start writes, for a broker that can't start can't make room either, and who leads.
WRITTEN_ON_A_FULL_DISK = (TopicDeleted, PartitionsRemoved, BrokerRegistered, LeadersChanged, PartitionsChanged)

R = TypeVar("R")

LOGGER = logging.getLogger(__name__)


class NotController(ApiError):
    """Another broker is the controller, or none."""


class Controller:
    """A broker's view of the cluster, and its pen when it is the elected one."""

    def __init__(self, store: MetadataStore, node_id: int) -> None:
        self.image = ClusterImage()
        self._store = store
        self._node_id = node_id
        self.on_session_lost: Callable[[], None] | None = None
        """Called when this broker's registration is gone, or may be: it must stop leading at once."""
        self.new_registration: Callable[[], Registration] = lambda: Registration(node_id, b"")
        """What this broker registers with after that: another incarnation, or a process that does not serve yet."""
        self.candidacy = Candidacy(store, node_id)
        self._leadership = NOBODY
        self._duties: Duties | None = None
        self._is_elected, self._has_lost_session = asyncio.Event(), asyncio.Event()
        self._is_uncertain = False  # whether the last entry was written nobody said
        self._position = START
        self._length = LogLength()
        self._pending: deque[Pending] = deque()
        self._writer: asyncio.Task[None] | None = None
        self._standby: asyncio.Task[None] | None = None
        self._subscriptions = Subscriptions()
        self._unwritten, self._unread, self._unshortened = (RepeatedLine(LOGGER, logging.ERROR) for _ in range(3))

    @classmethod
    async def open(cls, store: MetadataStore, node_id: int, *, cluster_id: str, is_serving: bool = True) -> Self:
        """Reads the log and takes part in the election, unless it does not serve yet and the cluster has others."""
        controller = cls(store, node_id)
        store.on_session_lost = controller._lose_session
        await store.register(controller.new_registration())
        if not is_serving:
            await controller._catch_up(NO_CONTROLLER)
            if not controller.image.brokers.keys() <= {node_id}:
                controller.candidacy.withdraw()
        await controller._take_part()
        known = await controller._join(cluster_id)
        if known != cluster_id:
            await controller.close()
            raise StoreError(f"the metadata store belongs to cluster {known}, the log directory to {cluster_id}")
        return controller

    async def _join(self, cluster_id: str) -> str:
        """Whose the store is. Of brokers that start together the elected one writes it, and the others wait for it."""
        while not self.image.cluster_id:
            if self.is_active:
                with contextlib.suppress(NotController):
                    await self.write(lambda image: decide_create_cluster(image, cluster_id))
            else:
                known = self._subscriptions.wait_for(lambda image: bool(image.cluster_id), self.image)
                await first_of(known, self._is_elected.wait())
        return self.image.cluster_id

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
        return self._subscriptions.add(listener, self.image)

    def take_duties(self, config: Callable[[], BrokerConfig]) -> None:
        """Follow other brokers' registrations, and hold elections, whenever this broker is the controller."""
        from moldau.controller.duties import Duties  # a broker that is alone has none of them

        if self._duties is None:
            self._duties = Duties(self, self._store, self._node_id, config)
        if self.is_active:
            self._duties.start()

    async def fence(self, broker_id: int, *, broker_epoch: int) -> None:
        """Have others lead at once what a process led that is known to be dead, before its registration is gone."""
        if self._duties is None:
            raise NotController(ErrorCode.NOT_CONTROLLER)
        await self._duties.fence(broker_id, broker_epoch)

    async def write(self, decide: Callable[[ClusterImage], Decision[R]]) -> R:
        """The reply of a decision, once its records are committed and applied."""
        if not self.is_active:
            raise NotController(ErrorCode.NOT_CONTROLLER)
        pending = Pending(decide, asyncio.get_running_loop().create_future())
        self._pending.append(pending)
        if self._writer is None:
            self._writer = asyncio.create_task(self._write_pending(), name="controller-writer")
        reply: R = await pending.reply
        return reply

    async def resign(self) -> None:
        """Let another broker be elected, and not this one before it stands again. Raises StoreError."""
        self.candidacy.withdraw()
        leadership = self._leadership
        if self.is_active:
            await self._store.resign(leadership)
            if self._leadership is leadership:
                self._step_down()

    async def settled(self) -> None:
        """Wait until what was decided is committed and everybody was told, or could not be."""
        if self._writer is not None:
            await asyncio.shield(self._writer)

    async def close(self) -> None:
        """Finishes what is pending, leaves a snapshot for a quick start and lets another broker take over."""
        self._store.on_session_lost = None  # whoever ends does not register anew
        self._subscriptions.close()
        self._end_duties()
        if self._standby is not None:
            self._standby.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._standby
        await self.settled()
        if self.is_active:
            with contextlib.suppress(StoreError):
                if self._length.entries and not self._is_uncertain:
                    await self._take_snapshot()
                await self._store.resign(self._leadership)

    async def _write_pending(self) -> None:
        try:
            while self._pending:
                count = min(len(self._pending), DECISIONS_PER_ENTRY_MAX)
                await self._write([self._pending.popleft() for _ in range(count)])
        finally:
            self._writer = None

    async def _write(self, batch: list[Pending]) -> None:
        """One entry for the batch. Whatever goes wrong, every reply of it is given."""
        leadership = self._leadership
        try:
            await self._make_certain()
        except Exception as wrong:
            self._fail([pending.reply for pending in batch], wrong, leadership)
            return
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
        except Exception as wrong:
            self._fail([reply for reply, _ in replies], wrong, leadership)
        else:
            for future, reply in replies:
                if not future.done():
                    future.set_result(reply)

    async def _write_apart(self, batch: list[Pending], wrong: Exception) -> None:
        """Records of one decision can't be applied: it fails, and the draft with it, but the others need not."""
        if len(batch) == 1:
            LOGGER.error("a decision of the controller can't be applied", exc_info=wrong)
            refuse([batch[0].reply], unexpected(wrong))
            return
        for pending in batch:
            await self._write([pending])

    def _decide(
        self, pending: Pending, draft: Draft, replies: list[tuple[asyncio.Future[Any], Any]]
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

    async def _make_certain(self) -> None:
        """Nothing is decided by one that is not the controller, nor on an image that may lack the last entry."""
        if not self.is_active:
            raise Fenced("another controller was elected")
        if self._is_uncertain:
            await self._catch_up(self._node_id)
            self._is_uncertain = False

    async def _commit(self, records: list[Record], draft: Draft) -> None:
        payload, leadership = encode_records(records), self._leadership
        may_take_reserve = any(isinstance(record, WRITTEN_ON_A_FULL_DISK) for record in records)
        try:
            position = await self._store.append(
                payload, controller_epoch=leadership.epoch, may_take_reserve=may_take_reserve
            )
        except Exception:
            self._is_uncertain = True
            raise
        if self._leadership is not leadership:
            raise Fenced("the session was lost while the entry was written")
        self._position = position
        self._length.add(payload)
        self._publish(draft.finish())
        if self._length.is_too_long:
            try:
                await self._take_snapshot()
            except Fenced:
                raise
            except Exception as wrong:
                # The entry is committed, and the replies must say so; the next one tries the snapshot again.
                self._unshortened.say(f"the metadata log could not be shortened: {wrong}")

    def _fail(self, replies: list[asyncio.Future[Any]], wrong: Exception, leadership: ControllerAndEpoch) -> None:
        self._unwritten.say(f"metadata can't be changed: {wrong}", exc_info=_if_unexpected(wrong))
        if isinstance(wrong, Fenced):
            refuse(replies, NotController(ErrorCode.NOT_CONTROLLER, str(wrong)))
            if self._leadership is leadership:
                self._step_down()
        elif isinstance(wrong, StoreError):
            refuse(replies, ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(wrong)))
        else:
            refuse(replies, unexpected(wrong))

    def _step_down(self) -> None:
        """Another controller may decide from now on, so this one must not."""
        self._leadership = ControllerAndEpoch(NO_CONTROLLER, self._leadership.epoch)
        self._is_elected.clear()
        self._end_duties()
        self._stand_by()

    def _end_duties(self) -> None:
        if self._duties is not None:
            self._duties.stop()

    def _lose_session(self) -> None:
        self._has_lost_session.set()
        self._step_down()
        if self.on_session_lost is not None:
            self.on_session_lost()

    def _publish(self, image: ClusterImage) -> None:
        self.image = image
        self._subscriptions.tell(image)

    async def _take_snapshot(self) -> None:
        position = self._position  # of this image: entries may follow while it is encoded
        payload = await encode_in_slices(snapshot_records(self.image))
        await self._store.snapshot(payload, position=position, controller_epoch=self._leadership.epoch)
        self._length.took_snapshot(payload)

    async def _take_part(self) -> None:
        """One look at the election. Whoever wins it has read everything up to the last entry of the epoch before."""
        leadership = await self.candidacy.elected()
        await self._catch_up(leadership.broker_id)
        if self._has_lost_session.is_set():
            raise Fenced("the session was lost")
        self._leadership = leadership
        if self.is_active:
            self._is_elected.set()
            self._is_uncertain = False
            if self._duties is not None:
                self._duties.start()
        else:
            self._stand_by()

    async def _catch_up(self, controller_id: int) -> None:
        tail = await self._read()
        if tail.end is None and self.image.controller_id == controller_id:
            return
        image = apply_tail(self.image, tail, self._length)
        self._position = tail.end or self._position
        self._publish(replace(image, controller_id=controller_id))

    async def _read(self) -> Tail:
        """What follows the image as it is, also if it was brought up to date by another on the way."""
        while True:
            position = self._position
            tail = await self._store.read(position)
            if position == self._position:
                return tail

    def _stand_by(self) -> None:
        if self._standby is None:
            self._standby = asyncio.create_task(self._follow(), name="controller-standby")

    async def _follow(self) -> None:
        """Reads what the controller writes, until there is none and this broker becomes it."""
        try:
            while not self.is_active:
                try:
                    await self._register_anew()
                    await self._take_part()
                    if not self.is_active:
                        await self._tail()
                except Exception as wrong:  # who does not follow any more goes on with an old image for ever
                    self._unread.say(f"metadata can't be read: {wrong}", exc_info=_if_unexpected(wrong))
                    await asyncio.sleep(STORE_RETRY_MS / 1000)
        finally:
            self._standby = None

    async def _register_anew(self) -> None:
        if self._has_lost_session.is_set():
            self._has_lost_session.clear()
            try:
                await self._store.register(self.new_registration())
            except BaseException:
                self._has_lost_session.set()
                raise

    async def _tail(self) -> None:
        """Applies new entries as they come, until there is another controller, or the session is lost."""
        await first_of(self._read_on(), self.candidacy.changed(self._leadership), self._has_lost_session.wait())

    async def _read_on(self) -> None:
        async for _ in self._store.watch(self._position):
            await self._catch_up(self._leadership.broker_id)


def _if_unexpected(wrong: Exception) -> Exception | None:
    """What a line of the log has to show in full."""
    return None if isinstance(wrong, StoreError) else wrong
