"""`python -m tests.faults.cluster.planted BUG start ...`: a broker with a bug, which the harness must catch.

Production code has no switch for any of this: the bug is patched into the process before the broker starts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from moldau.core.errors import ErrorCode


class _Equal(int):
    """Equal to everything."""

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = int.__hash__


def skip_crc() -> None:
    """Batches are taken whatever their checksums say, from clients, leaders and disk."""
    from moldau.log.appending import replicated, validation
    from moldau.log.maintenance import scanning

    _patch(validation, "crc32c", lambda _: _Equal())
    for module in (replicated, scanning):
        _patch(module, "verify_crc", lambda *_: True)


def forget_sequence() -> None:
    """A batch that is sent again is written again."""
    from moldau.log.producers.producer_state import ProducerStateEntry, ProducerStates

    _patch(ProducerStateEntry, "duplicate_of", lambda *_: None)
    _patch(ProducerStates, "_check_sequence", lambda *_: None)


def acknowledge_early() -> None:
    """acks=all is answered as soon as the leader has the records."""
    from moldau.replication.partition import Partition

    def acknowledgement(self: Partition, _: int) -> ErrorCode:
        return ErrorCode.NONE if self.is_leader else self.refusal

    _patch(Partition, "acknowledgement", acknowledgement)


def _patch(owner: Any, name: str, planted: object) -> None:
    assert hasattr(owner, name), f"{owner} has no {name} any more: plant the bug elsewhere"
    setattr(owner, name, planted)


BUGS: dict[str, Callable[[], None]] = {
    "skip-crc": skip_crc,
    "forget-sequence": forget_sequence,
    "acknowledge-early": acknowledge_early,
}


def main() -> int:
    from moldau.__main__ import run

    BUGS[sys.argv[1]]()
    return run(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
