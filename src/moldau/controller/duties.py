"""What the controller does by itself: it follows the brokers' registrations, and holds elections from time to time.

Every decision is about a limited number of partitions, so that none holds the loop for long, and right whatever was
done of it before: a controller that is elected in the middle does all of it again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from moldau.controller.image import BrokerImage, ClusterImage, TopicImage
from moldau.controller.members.membership import (
    SCANNED_MAX,
    Cursor,
    Registrations,
    decide_fence_broker,
    decide_fence_missing,
    decide_restore,
    decide_settle,
    decide_take_in,
    returning,
)
from moldau.controller.members.registration import cut_off, serving
from moldau.controller.partitions.elections import (
    decide_balance_leaders,
    decide_elect_unclean,
    imbalanced,
    leaderless,
)
from moldau.controller.partitions.leaders import ELECTIONS_MAX
from moldau.core.config.broker import BrokerConfig
from moldau.core.decision import Decision
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.ids import TopicPartition
from moldau.core.repeated_line import RepeatedLine
from moldau.store.store import MetadataStore, StoreError

RETRY_MS = 1_000  # after which what could not be read or written is tried again

R = TypeVar("R")

LOGGER = logging.getLogger(__name__)


class Writer(Protocol):
    image: ClusterImage

    def write(self, decide: Callable[[ClusterImage], Decision[R]]) -> Awaitable[R]: ...


class Duties:
    """They begin with an election, and end when another controller may have been elected."""

    def __init__(
        self, controller: Writer, store: MetadataStore, node_id: int, config: Callable[[], BrokerConfig]
    ) -> None:
        self._config = config
        self._controller = controller
        self._store = store
        self._node_id = node_id
        self._tasks: set[asyncio.Task[None]] = set()
        self._elections_are_held = False
        self._failures = self._failures_settled = 0  # after which brokers may be fenced, and their partitions not know
        self._living: Registrations = ()
        self._undone = RepeatedLine(LOGGER, logging.ERROR)

    def start(self) -> None:
        if not self._tasks:
            self._begin(self._follow(), "controller-registrations")

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()
        self._elections_are_held = False

    async def fence(self, broker_id: int, broker_epoch: int) -> None:
        write = self._controller.write
        try:
            if await write(lambda image: decide_fence_broker(image, broker_id, broker_epoch=broker_epoch)):
                LOGGER.info("broker %d is fenced: its process is known to have ended", broker_id)
                await self._settle()
        except BaseException:
            self._failures += 1
            raise

    def _begin(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow(self) -> None:
        await self._until_done(self._settle)
        while True:
            try:
                async for registrations in self._store.watch_registrations():
                    await self._follow_living(serving(registrations))
            except StoreError as wrong:
                self._undone.say(f"the brokers' registrations can't be read: {wrong}")
            except Exception:  # who does not look any more would fence nobody, for as long as it is the controller
                LOGGER.exception("the brokers' registrations can't be read; it is tried again")
            await asyncio.sleep(RETRY_MS / 1000)

    async def _follow_living(self, registered: Registrations) -> None:
        """Whoever has duties has said before that it serves, so a look that misses it says nothing about others."""
        if any(each.id == self._node_id for each in registered):
            unreached = cut_off(registered)
            self._living = [each for each in registered if each.id not in unreached]
            await self._until_done(self._catch_up)
        else:
            seen = ", ".join(str(each.id) for each in registered) or "nobody"
            LOGGER.warning("this controller is not among the brokers that are registered (%s); it looks again", seen)

    async def _until_done(self, work: Callable[[], Awaitable[None]]) -> None:
        """What can't be written now must be written later: nobody else does it."""
        while True:
            try:
                await work()
            except ApiError as refused:
                if refused.code is ErrorCode.NOT_CONTROLLER:
                    return
                self._undone.say(f"the cluster can't follow its brokers: {refused}")
            except Exception:
                LOGGER.exception("the cluster can't follow its brokers")
            else:
                return
            self._failures += 1
            await asyncio.sleep(RETRY_MS / 1000)

    async def _catch_up(self) -> None:
        """Make the cluster what the living brokers say it is, in the steps that `membership` tells."""
        living, node_id, config = self._living, self._node_id, self._config()
        write = self._controller.write
        changed = await write(lambda image: decide_fence_missing(image, living, controller_id=node_id))
        _log_changes(changed)
        if changed or self._failures != self._failures_settled:
            await self._settle()
        coming = returning(self._controller.image, living, controller_id=node_id)
        if coming.broker_ids:
            await self._go_through(partial(decide_restore, coming=coming, config=config))
            restored = [each for each in living if each.id in coming.broker_ids]
            taken = await write(lambda image: decide_take_in(image, restored, controller_id=node_id))
            LOGGER.info("brokers are taken in: %s", ", ".join(map(str, taken)))
            await self._settle()
        if len(self._controller.image.brokers) > 1:
            self._hold_elections()

    async def _settle(self) -> None:
        failures = self._failures
        await self._go_through(partial(decide_settle, config=self._config()))
        self._failures_settled = failures

    async def _go_through(self, decide: Callable[..., Decision[Cursor | None]]) -> None:
        """All topics that there are, a limited number of partitions at a time."""
        names = list(self._controller.image.topics)
        cursor: Cursor | None = Cursor()
        while cursor is not None:
            at = cursor
            cursor = await self._controller.write(partial(decide, names=names, start=at))

    def _hold_elections(self) -> None:
        if not self._elections_are_held:
            self._elections_are_held = True
            self._begin(self._balance(), "controller-balance")
            self._begin(self._elect_unclean(), "controller-unclean-elections")

    async def _balance(self) -> None:
        while True:
            await asyncio.sleep(self._config().int("leader.imbalance.check.interval.seconds"))
            if self._config().flag("auto.leader.rebalance.enable"):
                await self._try_to_elect(imbalanced, decide_balance_leaders)

    async def _elect_unclean(self) -> None:
        while True:
            await asyncio.sleep(self._config().int("unclean.leader.election.interval.ms") / 1000)
            await self._try_to_elect(leaderless, decide_elect_unclean)

    async def _try_to_elect(
        self, find: Callable[[TopicImage], Iterator[TopicPartition]], decide: Callable[..., Decision[int]]
    ) -> None:
        try:
            await self._elect(find, decide)
        except Exception:  # a fault of ours must not end the elections for good
            LOGGER.exception("leaders can't be elected; it is tried again")

    async def _elect(
        self, find: Callable[[TopicImage], Iterator[TopicPartition]], decide: Callable[..., Decision[int]]
    ) -> None:
        async for partitions in self._in_turns(find):
            write = partial(self._controller.write, partial(decide, partitions=partitions, config=self._config()))
            try:
                count = await write()
            except ApiError as refused:
                self._undone.say(f"leaders can't be elected: {refused}")
                return
            if count:
                LOGGER.info("%d partitions have another leader", count)

    async def _in_turns(
        self, find: Callable[[TopicImage], Iterator[TopicPartition]]
    ) -> AsyncIterator[Sequence[TopicPartition]]:
        """Partitions that are found, a limited number at a time, with turns for others in between."""
        found: list[TopicPartition] = []
        scanned = 0
        for topic in tuple(self._controller.image.topics.values()):
            scanned += len(topic.partitions)
            found.extend(find(topic))
            while len(found) >= ELECTIONS_MAX:
                yield found[:ELECTIONS_MAX]
                del found[:ELECTIONS_MAX]
            if scanned >= SCANNED_MAX:
                scanned = 0
                await asyncio.sleep(0)
        if found:
            yield found


def _log_changes(changed: Sequence[BrokerImage]) -> None:
    for broker in changed:
        if broker.fenced:
            LOGGER.info("broker %d is fenced: it is gone, out of reach for most others, or started anew", broker.id)
        elif broker.in_controlled_shutdown:
            LOGGER.info("broker %d shuts down", broker.id)
