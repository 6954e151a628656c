"""Ending the sessions of brokers whose processes are known to have ended, before the metadata store misses them.

A process that dies while its host lives leaves evidence: its connections break, and its port refuses. Whoever meets
that looks at the port itself, and ends the registration that named it; what follows is what follows a session's end,
whoever the broker was. If the process lives all the same, it finds its session lost and registers anew: epochs and the
store's fences keep it from doing harm. A host that is silent refuses nothing, and is left to its session.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Coroutine
from typing import Any

from moldau.controller.image import ClusterImage, Endpoint
from moldau.controller.members.registration import BrokerRegistration, serving
from moldau.controller.runtime import Controller
from moldau.store.store import MetadataStore, Registration, StoreError

LOGGER = logging.getLogger(__name__)

ANSWER_S_MAX = 1.0  # for a connection; a refusal comes in one round trip
PAUSE_S = 0.1  # between two looks at one broker: every channel to it reports that it can't connect, again and again


class Evidence:
    """What this broker does about others that it can't reach."""

    def __init__(self, controller: Controller, store: MetadataStore, *, listener_name: str) -> None:
        self._controller = controller
        self._store = store
        self._listener_name = listener_name
        self._looking: set[int] = set()
        self._evicted: dict[int, bytes] = {}  # incarnations, of brokers that were not reached since
        self._tasks: set[asyncio.Task[None]] = set()
        self._unsubscribe = controller.subscribe(self._follow)

    def suspect(self, broker_id: int) -> None:
        """A connection to a broker broke, or was refused."""
        known = self._controller.image.brokers.get(broker_id)
        # A broker that came back and is out of reach from here only must not be ended again and again.
        if known is None or known.fenced or broker_id in self._looking or broker_id in self._evicted:
            return
        self._looking.add(broker_id)
        self._begin(self._look(broker_id))

    async def stop(self) -> None:
        self._unsubscribe()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _look(self, broker_id: int) -> None:
        try:
            found = await self._registered(broker_id)
            if found is not None and await self._has_ended(found[1]) and await self._store.evict(found[0]):
                self._evicted[broker_id] = found[1].incarnation
                LOGGER.warning("broker %d is dead, for its port refuses connections; its session is ended", broker_id)
            await asyncio.sleep(PAUSE_S)
        except StoreError as wrong:
            LOGGER.debug("broker %d is out of reach, and so is the metadata store: %s", broker_id, wrong)
        finally:
            self._looking.discard(broker_id)
        self._follow(self._controller.image, self._controller.image)  # it may be back already

    async def _registered(self, broker_id: int) -> tuple[Registration, BrokerRegistration] | None:
        """The registration of this very moment: the image may lack a process that has just replaced the one before."""
        for raw in await self._store.registrations():
            if raw.broker_id == broker_id:
                return next(((raw, each) for each in serving([raw])), None)
        return None

    async def _has_ended(self, broker: BrokerRegistration) -> bool:
        """One that stops has handed over all it led; it refuses connections before its session ends by itself."""
        if broker.wants_shutdown and not _is_in_charge(self._controller.image, broker.id):
            return False
        return await refuses(self._endpoint(broker))

    def _endpoint(self, broker: BrokerRegistration) -> Endpoint:
        return broker.endpoints.get(self._listener_name) or next(iter(broker.endpoints.values()))

    def _follow(self, _: ClusterImage, new: ClusterImage) -> None:
        for broker_id, incarnation in self._evicted.items():
            known = new.brokers.get(broker_id)
            if known is None or known.fenced or known.incarnation == incarnation or broker_id in self._looking:
                continue
            self._looking.add(broker_id)
            self._begin(self._trust_again(broker_id, known.incarnation))

    async def _trust_again(self, broker_id: int, incarnation: bytes) -> None:
        """Evidence against a broker that came back counts if it was reached since."""
        try:
            found = await self._registered(broker_id)
            if found is not None and not await refuses(self._endpoint(found[1])):
                self._evicted.pop(broker_id, None)
            else:
                self._evicted[broker_id] = incarnation
        except StoreError as wrong:
            LOGGER.debug("the metadata store is out of reach: %s", wrong)
        finally:
            self._looking.discard(broker_id)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work, name="evidence")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def refuses(endpoint: Endpoint) -> bool:
    """Whether the host answers, at each of its addresses, that nobody listens there. Silence is no answer."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    except OSError:
        return False
    answers = [await _is_refused(family, kind, protocol, address) for family, kind, protocol, _, address in found]
    return bool(answers) and all(answers)


async def _is_refused(family: int, kind: int, protocol: int, address: Any) -> bool:
    with socket.socket(family, kind, protocol) as plain:
        plain.setblocking(False)
        try:
            async with asyncio.timeout(ANSWER_S_MAX):
                await asyncio.get_running_loop().sock_connect(plain, address)
        except ConnectionRefusedError:
            return True
        except OSError:  # TimeoutError is one, too
            return False
    return False


def _is_in_charge(image: ClusterImage, broker_id: int) -> bool:
    leads = any(state.leader == broker_id for topic in image.topics.values() for state in topic.partitions)
    return leads or image.controller_id == broker_id
