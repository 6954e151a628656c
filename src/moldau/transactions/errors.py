"""How an error is told to clients that were written before it existed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from moldau.core.errors import ErrorCode
from moldau.wire.api import ApiKey

# The first version of each API in which a client knows what being fenced is.
KNOWS_FENCED: Mapping[int, int] = MappingProxyType(
    {
        ApiKey.INIT_PRODUCER_ID: 4,
        ApiKey.ADD_PARTITIONS_TO_TXN: 2,
        ApiKey.ADD_OFFSETS_TO_TXN: 2,
        ApiKey.END_TXN: 2,
    }
)


def error_for_client(error: ErrorCode, api: ApiKey, version: int) -> ErrorCode:
    if error is ErrorCode.PRODUCER_FENCED and version < KNOWS_FENCED[api]:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error
