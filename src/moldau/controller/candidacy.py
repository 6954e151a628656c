"""Whether a broker stands for election, and who was elected.

A broker that still opens its logs could be elected, but it does not answer anybody: ISRs would stay as they are, and
topics be made by nobody, until it has recovered all it has.
"""

from __future__ import annotations

import asyncio

from moldau.controller.image import NO_CONTROLLER
from moldau.controller.subscriptions import first_of
from moldau.store.store import ControllerAndEpoch, MetadataStore

NOBODY = ControllerAndEpoch(NO_CONTROLLER, 0)


class Candidacy:
    def __init__(self, store: MetadataStore, node_id: int) -> None:
        self._store = store
        self._node_id = node_id
        self._is_standing = asyncio.Event()
        self._is_standing.set()

    def withdraw(self) -> None:
        self._is_standing.clear()

    def stand(self) -> None:
        self._is_standing.set()

    async def elected(self) -> ControllerAndEpoch:
        """The controller: this broker, if there is none and it stands for election."""
        if self._is_standing.is_set():
            return await self._store.elect(self._node_id)
        async for current in self._store.watch_controller():
            return self._without_itself(current)
        return NOBODY

    def _without_itself(self, current: ControllerAndEpoch | None) -> ControllerAndEpoch:
        """Whoever resigned may be told of its own election once more, by a sight from before."""
        is_own = current is not None and current.broker_id == self._node_id
        return NOBODY if current is None or (is_own and not self._is_standing.is_set()) else current

    async def changed(self, known: ControllerAndEpoch) -> None:
        """Until there is another controller, or this broker has to see whether it becomes it."""
        if self._is_standing.is_set():
            await self._another(known)
        else:
            await first_of(self._another(known), self._is_standing.wait())

    async def _another(self, known: ControllerAndEpoch) -> None:
        async for current in self._store.watch_controller():
            if self._without_itself(current) != known or (current is None and self._is_standing.is_set()):
                return
