"""Whether the brokers of a cluster hear each other, beside what the metadata store hears of each.

A broker that the others can't reach may keep its session in the store, and with it all that it leads. So brokers ask
each other, and say in their registrations who does not answer. The controller fences a broker that is cut off from a
majority (`controller.registration.cut_off`). That broker gives up the controller's office, and comes back as another
incarnation once it is heard again; so does one that was fenced for any other reason while it lived.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence

from moldau.broker.peers import Peers
from moldau.controller.image import ClusterImage
from moldau.controller.members.registration import BrokerRegistration, cut_off, serving
from moldau.controller.runtime import Controller
from moldau.core.repeated_line import RepeatedLine
from moldau.node.cluster.membership import Membership
from moldau.replication.channel_connection import AuthenticationFailed, ChannelError
from moldau.replication.reach import Reach
from moldau.store.store import MetadataStore, StoreError
from moldau.wire.messages import ApiVersionsRequest

LOGGER = logging.getLogger(__name__)

LOOKS = 9  # in a session's time: once a second, where that has Kafka's length
ANSWER_SHARE = 1 / 3  # of a session's time, for one answer; a connection that gave none is made anew
PURPOSE = "reach"


class Reachability:
    """Asks the other brokers in turns, and acts on what they say, and on what they say of this one."""

    def __init__(
        self,
        controller: Controller,
        store: MetadataStore,
        membership: Membership,
        peers: Peers,
        *,
        broker_id: int,
        timeout_ms: int,
    ) -> None:
        self._controller = controller
        self._store = store
        self._membership = membership
        self._peers = peers
        self._broker_id = broker_id
        self._timeout_s = timeout_ms / 1000
        self._reach = Reach(self._timeout_s)
        self._asking: dict[int, asyncio.Task[None]] = {}
        self._has_withdrawn = False
        self._not_trusted = RepeatedLine(LOGGER, logging.WARNING)
        self._task: asyncio.Task[None] | None = None
        self._acting: asyncio.Task[None] | None = None
        self._unsubscribe: Callable[[], None] | None = None

    def start(self) -> None:
        self._unsubscribe = self._controller.subscribe(self._give_up_fenced)
        self._task = asyncio.get_running_loop().create_task(self._run(), name="reachability")

    async def stop(self) -> None:
        if self._unsubscribe is not None:
            self._unsubscribe()
        tasks = [each for each in (*self._asking.values(), self._task, self._acting) if each is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._timeout_s / LOOKS)
            silent = self._reach.out_of_reach(loop.time())
            self._ask_all(silent)
            # In a task of its own: a store that is slow must not keep this broker from listening to others.
            if self._acting is None and (silent or not self._is_as_usual()):
                self._acting = loop.create_task(self._act(), name="reachability-told")

    async def _act(self) -> None:
        try:
            registered = serving(await self._store.registrations())
            # Who is silent by now: the store may have taken long, and whoever was heard since is in reach.
            await self._follow(self._reach.out_of_reach(asyncio.get_running_loop().time()), registered)
        except StoreError as wrong:
            LOGGER.debug("the metadata store is out of reach: %s", wrong)
        except Exception:  # a fault of ours must not go unnoticed; it is tried again
            LOGGER.exception("what other brokers say of this one can't be followed")
        finally:
            self._acting = None

    def _give_up_fenced(self, old: ClusterImage, new: ClusterImage) -> None:
        """What is open to a silent broker would be waited for to its time-out, although others lead by now."""
        if old.brokers is new.brokers:
            return
        for broker in new.brokers.values():
            known = old.brokers.get(broker.id)
            if broker.fenced and known is not None and not known.fenced and broker.id != self._broker_id:
                self._peers.give_up(broker.id, "it was fenced")

    def _is_as_usual(self) -> bool:
        membership = self._membership
        is_told = membership.is_told and not membership.out_of_reach
        return is_told and not self._has_withdrawn and not membership.is_fenced(self._controller.image)

    def _ask_all(self, silent: Collection[int]) -> None:
        """Those that belong to the cluster at the moment, and those that were silent until they answer."""
        for broker in self._controller.image.brokers.values():
            if broker.id == self._broker_id or broker.id in self._asking:
                continue
            if broker.fenced and broker.id not in silent:
                self._reach.heard(broker.id)
                continue
            self._asking[broker.id] = asyncio.get_running_loop().create_task(self._ask(broker.id), name=PURPOSE)

    async def _ask(self, broker_id: int) -> None:
        loop = asyncio.get_running_loop()
        self._reach.asked(broker_id, loop.time())
        channel = self._peers.channels.to(broker_id, PURPOSE)
        try:
            await channel.ask(ApiVersionsRequest(), 0, timeout_ms=int(self._timeout_s * ANSWER_SHARE * 1000))
        except AuthenticationFailed as wrong:
            # It lives, and is of no use to who can't ask it. If no two brokers trust each other, none is fenced for it.
            self._not_trusted.say(str(wrong))
        except ChannelError as wrong:
            LOGGER.debug("broker %d does not answer: %s", broker_id, wrong)
        else:
            self._reach.heard(broker_id)
        finally:
            self._asking.pop(broker_id, None)

    async def _follow(self, silent: Sequence[int], registered: Sequence[BrokerRegistration]) -> None:
        await self._membership.tell(self._registered(silent, registered))
        is_cut_off = self._broker_id in cut_off(registered)
        if is_cut_off:
            if not self._has_withdrawn:
                LOGGER.warning("this broker is out of reach for most others, which will lead what it leads")
            self._has_withdrawn = True
            await self._controller.resign()
        elif self._has_withdrawn:
            self._has_withdrawn = False
            self._controller.candidacy.stand()
        if not is_cut_off and self._membership.is_fenced(self._controller.image):
            await self._membership.come_back()

    def _registered(self, silent: Sequence[int], registered: Sequence[BrokerRegistration]) -> tuple[int, ...]:
        """Of silent brokers, those that are registered where they were asked, neither gone nor moved elsewhere."""
        known, found = self._controller.image.brokers, []
        endpoints = {each.id: each.endpoints for each in registered}
        for broker_id in silent:
            if broker_id in known and endpoints.get(broker_id) == known[broker_id].endpoints:
                found.append(broker_id)
            else:
                self._reach.heard(broker_id)
        return tuple(found)
