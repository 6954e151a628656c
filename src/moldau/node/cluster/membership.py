"""This broker's place among others: what it says of itself in the metadata store, how it is taken in and leaves."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from moldau.broker.context import Services
from moldau.controller.image import BrokerImage, ClusterImage, without_broker
from moldau.controller.members.registration import BrokerRegistration, encode_registration
from moldau.core.ids import NO_LEADER, TopicId
from moldau.node.storage.kept_logs import note_boot
from moldau.replication.partition import LeaderAndEpoch, Partition
from moldau.store.store import Registration, StoreError

LOGGER = logging.getLogger(__name__)

INCARNATION_BYTES = 16
SAY_AGAIN_S = 0.5  # for the metadata store to answer again
LEAVE_S_MAX = 15.0  # for others to take over what this broker leads; it ends all the same, as if it had crashed


@dataclass(frozen=True, slots=True)
class Place:
    """A cluster that a broker belongs to from its first start on."""

    folder: Path | None
    """Where the metadata is that its brokers on this machine share; None for one in a service of many machines."""
    brokers: int
    """How many there are when all have started."""


class Registry(Protocol):
    """Of the metadata store, what a broker says of itself."""

    async def update(self, registration: Registration) -> None: ...


class Membership:
    """Until the cluster has taken this incarnation in, what the image says of it is about the one before."""

    def __init__(
        self,
        store: Registry,
        broker: BrokerImage,
        *,
        cluster_id: str,
        has_whole_logs: bool,
        lost: dict[TopicId, tuple[int, ...]],
        kept: dict[TopicId, tuple[int, ...]] | None = None,
    ) -> None:
        """`lost` and `kept` are what the registration says of logs that are gone."""
        self._store = store
        self._cluster_id = cluster_id
        self._registration = BrokerRegistration(
            broker.id,
            os.urandom(INCARNATION_BYTES),
            broker.endpoints,
            broker.rack,
            broker.directories,
            has_whole_logs=has_whole_logs,
            lost=lost,
            kept=kept,
            min_insync_replicas=broker.min_insync_replicas,
            inter_broker_listener=broker.inter_broker_listener,
            inter_broker_principal=broker.inter_broker_principal,
        )
        self.is_followed = False
        """Whether what the image says of this broker is about this very process."""
        self._is_said = True  # whether the store has the registration as it is here

    @property
    def out_of_reach(self) -> tuple[int, ...]:
        """The brokers of which the cluster was told so, or is to be."""
        return self._registration.out_of_reach

    @property
    def is_told(self) -> bool:
        return self._is_said

    def follow(self, image: ClusterImage) -> bool:
        """Whether this broker may be what the image says, for the first time or again."""
        known = image.brokers.get(self._registration.id)
        is_ours = known is not None and known.incarnation == self._registration.incarnation and not known.fenced
        if is_ours and not self.is_followed:
            self._report_shared_addresses(image)
        self.is_followed = self.is_followed or is_ours
        return self.is_followed

    def _report_shared_addresses(self, image: ClusterImage) -> None:
        """Of two brokers the one that is taken in last sees the other. As in Apache Kafka no start fails for it."""
        ours = {(each.host, each.port) for each in self._registration.endpoints.values()}
        for other in image.active_brokers():
            shared = ours & {(each.host, each.port) for each in other.endpoints.values()}
            if shared and other.id != self._registration.id:
                host, port = min(shared)
                LOGGER.warning(
                    "broker %d advertises %s:%d too, so that clients and brokers can't reach both; set an address of "
                    "its own for each (advertised.listeners)",
                    *(other.id, host, port),
                )

    async def join(self, services: Services, stop: asyncio.Event) -> None:
        """Say that this broker serves, and wait until the controller has taken it in or the broker is to end."""
        controller = services.controller
        controller.on_session_lost = partial(self._lose_session, services)
        controller.new_registration = self.register_anew
        await self._say_so(stop)
        # Whoever was alone takes others in from now on: before, it would have missed itself among the living.
        controller.take_duties(lambda: services.config)
        controller.candidacy.stand()
        await _until(services, lambda _: self.is_followed, stop)
        if self.is_followed:
            note_boot(services.directories)
            # What failed while the logs were opened was told of the process before, and forgotten with it.
            services.directories.tell_of_failures()

    def register_anew(self) -> Registration:
        """What to register with after a lost session, another one for each try: the store may have had the one before,
        although it seemed to fail, and the controller may have fenced it since, which is for good."""
        self._registration = replace(self._registration, incarnation=os.urandom(INCARNATION_BYTES))
        return self._new_registration()

    def is_fenced(self, image: ClusterImage) -> bool:
        """Whether it was taken in and fenced since, which is for good: it lives, and has to be another incarnation."""
        known = image.brokers.get(self._registration.id)
        if known is None or known.incarnation != self._registration.incarnation:
            return False
        return known.fenced and not self._registration.wants_shutdown

    async def tell(self, out_of_reach: tuple[int, ...]) -> None:
        """Say which other brokers are out of reach. Raises StoreError; then it is to be said again."""
        if out_of_reach != self.out_of_reach or not self._is_said:
            self._registration = replace(self._registration, out_of_reach=out_of_reach)
            await self._update()

    async def come_back(self) -> None:
        """After this process was fenced while it lived: others lead what it led, as its image says or will say."""
        LOGGER.warning("this broker was fenced while it lived; it registers anew")
        self._become_another()
        await self._update()

    async def _update(self) -> None:
        self._is_said = False
        await self._store.update(self._new_registration())
        self._is_said = True

    async def _say_so(self, stop: asyncio.Event) -> None:
        """A session that was lost while the logs were opened is followed by another; then it is said once more."""
        while not stop.is_set():
            try:
                await self._store.update(self._new_registration())
            except StoreError as wrong:
                LOGGER.warning("the cluster can't be told yet that this broker serves: %s", wrong)
                await asyncio.sleep(SAY_AGAIN_S)
            else:
                return

    def _new_registration(self) -> Registration:
        return encode_registration(self._registration, cluster_id=self._cluster_id)

    def _lose_session(self, services: Services) -> None:
        """Others may lead what this broker led: it must not, until it is taken in again as another incarnation."""
        LOGGER.warning("the metadata store has lost this broker's session; it registers anew")
        self._become_another()
        image = services.controller.image
        if not image.brokers.keys() <= {services.broker_id}:
            self.is_followed = False
            stop_leading(services.partitions.all())
            services.image_without_itself = without_broker(image, services.broker_id)

    def _become_another(self) -> None:
        self._registration = replace(self._registration, incarnation=os.urandom(INCARNATION_BYTES))
        if self.is_followed:
            # The cluster knows what was lost before the start, and this process has all that it acknowledged since.
            self._registration = replace(self._registration, has_whole_logs=True, lost={}, kept=None, goes_on=True)

    async def leave(self, services: Services) -> None:
        """Have others lead what this broker leads, as far as there are others (controlled shutdown).

        What nobody takes over is led no longer, too: whoever waits for more replicas would hold up the stop in vain.
        """
        await self._hand_over(services)
        stop_leading(partition for partition in services.partitions.all() if partition.replicas is not None)

    async def _hand_over(self, services: Services) -> None:
        image = services.controller.image
        if not any(broker.id != services.broker_id for broker in image.active_brokers()):
            return
        try:
            self._registration = replace(self._registration, wants_shutdown=True)
            await self._store.update(self._new_registration())
            async with asyncio.timeout(LEAVE_S_MAX):
                await _until(services, lambda image: not _leads(image, services.broker_id))
        except TimeoutError:
            LOGGER.warning("nobody took over all that this broker leads in %g s; it stops all the same", LEAVE_S_MAX)
        except StoreError as wrong:
            LOGGER.warning("the cluster could not be told of this broker's stop: %s", wrong)


async def _until(services: Services, is_so: Callable[[ClusterImage], bool], stop: asyncio.Event | None = None) -> None:
    """Wait for an image, or for the broker's end."""
    assert services.forwarding is not None, "a broker of a cluster has others"
    seen = asyncio.ensure_future(services.forwarding.seen(is_so))
    waited = [seen] if stop is None else [seen, asyncio.ensure_future(stop.wait())]
    try:
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waited:
            each.cancel()


def stop_leading(partitions: Iterable[Partition]) -> None:
    for partition in partitions:
        if partition.is_leader:
            try:
                partition.lead(LeaderAndEpoch(NO_LEADER, partition.leader_epoch))
            except Exception:  # of somebody who waited for this one; it must not leave us leading the others
                LOGGER.exception("not everybody was told that %s is led no longer", partition.log.partition)


def _leads(image: ClusterImage, broker_id: int) -> bool:
    return any(state.leader == broker_id for topic in image.topics.values() for state in topic.partitions)
