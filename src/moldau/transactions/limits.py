"""What the broker's configuration and the cluster's features allow transactions."""

from __future__ import annotations

from typing import Self

import msgspec

from moldau.core.config.broker import BrokerConfig
from moldau.transactions.transaction import SECOND_PROTOCOL

# The tombstones of one decision are one batch, which must fit into the topic's `max.message.bytes`.
FORGOTTEN_IDS_MAX = 500
FORGOTTEN_BYTES_MAX = 256 * 1024
EXPIRY_LOOKS_MAX = 5_000  # at ids that stay, in one turn of the loop: some milliseconds

SPARE_ID_WAIT_MS = 1_000  # until a time-out looks again whether there is a producer id for it


class TransactionLimits(msgspec.Struct, frozen=True):
    timeout_ms_max: int = 900_000
    id_expiration_ms: int = 604_800_000
    expiry_interval_ms: int = 3_600_000
    allows_two_phase_commit: bool = False
    transaction_version: int = SECOND_PROTOCOL
    """The finalized level of the feature `transaction.version`."""

    @classmethod
    def of(cls, config: BrokerConfig, *, transaction_version: int) -> Self:
        return cls(
            timeout_ms_max=config.int("transaction.max.timeout.ms"),
            id_expiration_ms=config.int("transactional.id.expiration.ms"),
            expiry_interval_ms=config.int("transaction.remove.expired.transaction.cleanup.interval.ms"),
            allows_two_phase_commit=config.flag("transaction.two.phase.commit.enable"),
            transaction_version=transaction_version,
        )
