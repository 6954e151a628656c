"""Who controls: /controller, which vanishes with its session, and /controller_epoch, which every election raises.

Both change in one transaction, as in Apache Kafka. What a controller writes checks the version that its election gave
/controller_epoch, and that /controller is there: a session that ended took it away, even if nobody was elected since.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from moldau.core.clock import Clock
from moldau.store.store import ControllerAndEpoch, Fenced
from moldau.store.tree import layout
from moldau.store.tree.client import (
    Change,
    Check,
    Create,
    Delete,
    Operation,
    Signal,
    TransactionRefused,
    TreeClient,
    Unanswered,
    patiently,
)


@dataclass(frozen=True, slots=True)
class Fence:
    """What an elected controller's writes check before anything else."""

    epoch: int
    epoch_version: int

    def operations(self) -> list[Operation]:
        return [Check(layout.CONTROLLER_EPOCH, self.epoch_version), Check(layout.CONTROLLER)]

    def error(self, refusal: TransactionRefused) -> Fenced | None:
        """For a transaction that began with these operations, if one of them was the reason."""
        if refusal.index >= 2:
            return None
        return Fenced(f"controller epoch {self.epoch} was replaced or given up, or its session ended")


class Elections:
    def __init__(self, client: TreeClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._changed = Signal()

    async def elect(self, broker_id: int, session_id: int) -> tuple[ControllerAndEpoch, Fence | None]:
        """The controller, with its fence if this session was elected now."""
        while True:
            await self._client.catch_up()
            last = await self._client.get(layout.CONTROLLER_EPOCH)
            registered = await self._client.find(layout.broker_path(broker_id))
            if registered is None or registered.session_id != session_id:
                raise Fenced(f"broker {broker_id} is not registered, or its session ended")
            current = await self._client.find(layout.CONTROLLER)
            if current is not None and current.session_id != session_id:
                return layout.decode_controller(current.data), None
            leadership = ControllerAndEpoch(broker_id, layout.decode_epoch(last.data) + 1)
            # The same broker once more is a new controller: what it still has in flight is fenced.
            removal = [Delete(layout.CONTROLLER)] if current else []
            epoch = layout.encode_epoch(leadership.epoch)
            node = layout.encode_controller(leadership, timestamp_ms=self._clock.now_ms())
            with contextlib.suppress(Unanswered, TransactionRefused):
                await self._client.commit_once(
                    Change(layout.CONTROLLER_EPOCH, epoch, version=last.version),
                    Check(layout.broker_path(broker_id), registered.version),
                    *removal,
                    Create(layout.CONTROLLER, node, ephemeral=True),
                )
                written = await self._client.get(layout.CONTROLLER_EPOCH)
                if written.data == epoch:  # else somebody was elected since
                    return leadership, Fence(leadership.epoch, written.version)

    async def resign(self, fence: Fence) -> None:
        """Whoever was elected since is left alone: its election changed the epoch's version."""
        with contextlib.suppress(TransactionRefused):  # again after an answer that was lost, too
            await self._client.commit(*fence.operations(), Delete(layout.CONTROLLER))

    async def watch(self) -> AsyncIterator[ControllerAndEpoch | None]:
        last: ControllerAndEpoch | None = None
        is_first = True
        while True:
            changed = self._changed.next()
            found = await patiently(lambda: self._client.find(layout.CONTROLLER, watch=self._changed))
            current = layout.decode_controller(found.data) if found else None
            if is_first or current != last:
                last, is_first = current, False
                yield current
            await changed.wait()

    def close(self) -> None:
        self._changed.fire()
