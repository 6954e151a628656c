"""ListTransactions (66): the transactional ids that this broker coordinates.

1 asks for those that run longer than some milliseconds, 2 for those whose id matches a regular expression.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import Int16, Int32, Int64, since


class ListTransactionsRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.LIST_TRANSACTIONS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int] = 0

    state_filters: list[str] = []
    producer_id_filters: list[Int64] = []
    duration_filter: Annotated[Int64, since(1)] = -1
    transactional_id_pattern: Annotated[str | None, since(2)] = None


class TransactionState(Struct, gc=False):
    transactional_id: str = ""
    producer_id: Int64 = 0
    transaction_state: str = ""


class ListTransactionsResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.LIST_TRANSACTIONS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE_FROM: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    unknown_state_filters: list[str] = []
    transaction_states: list[TransactionState] = []
