"""What a member written in Python tells the tests; tests/rebalance/members.py describes the lines."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping

Partition = tuple[str, int]


def tell(event: str, **fields: object) -> None:
    sys.stdout.write(json.dumps({"event": event, "at_us": time.time_ns() // 1_000, **fields}) + "\n")
    sys.stdout.flush()


def tell_partitions(event: str, partitions: Iterable[Partition]) -> None:
    tell(event, partitions=sorted(partitions))


def tell_read(spans: Mapping[Partition, tuple[int, int]]) -> None:
    """The first and last offset of what was read of each partition."""
    tell("read", spans=[[topic, index, first, last] for (topic, index), (first, last) in spans.items()])


def tell_committed(offsets: Mapping[Partition, int]) -> None:
    tell("committed", offsets=[[topic, index, offset] for (topic, index), offset in offsets.items()])
