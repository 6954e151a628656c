"""The quota of a request that creates or deletes partitions (KIP-599), for its decision and its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.controller.partitions.states import Admit, admit_all

if TYPE_CHECKING:
    from moldau.broker.context import Context


class Mutations:
    """Versions of a request from `strict_since` on are refused what is above the quota; older ones are throttled."""

    __slots__ = ("_quota", "admit")

    def __init__(self, context: Context, *, strict_since: int) -> None:
        quotas = context.services.quotas
        self._quota = None if quotas is None else quotas.mutating(context, strict=context.version >= strict_since)
        self.admit: Admit = admit_all if self._quota is None else self._quota.admit

    @property
    def throttle_ms(self) -> int:
        return 0 if self._quota is None else self._quota.throttle_ms
