"""How ranges are read: what every way of reading has to know."""

from __future__ import annotations

from dataclasses import dataclass

from moldau.client.security import ClientSettings


@dataclass(frozen=True, slots=True)
class RangeReading:
    """The same for all tasks of a query. Records come as `columns`, in that order."""

    client: ClientSettings
    columns: tuple[str, ...]
    poll_timeout_ms: int
    fails_on_data_loss: bool
    group: str  # that librdkafka names; nothing is committed to it
    may_fetch: bool = True
