"""Settings of Apache Kafka's Java clients for librdkafka: files and options of its tools are full of them."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping

from moldau.cli.connection import CLIENT_ID
from moldau.cli.failures import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What librdkafka has no use for: Java's classes, and limits of calls that it does not have.
_JAVA_ALONE = (
    "key.serializer", "value.serializer", "key.deserializer", "value.deserializer", "max.block.ms",
    "default.api.timeout.ms", "max.poll.records", "metric.reporters", "interceptor.classes", "partitioner.ignore.keys",
    "auto.include.jmx.reporter", "metrics.num.samples", "metrics.recording.level", "metrics.sample.window.ms",
)  # fmt: skip
_RENAMED = {
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
}
_KIB = 1024
AS_JAVA = "murmur2_random"  # librdkafka's name for the partitioner of Java's clients
_ASSIGNORS = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "CooperativeStickyAssignor": "cooperative-sticky",
}


def java_client_config(options: Namespace, *, client_id: str, **settings: object) -> dict[str, Any]:
    """librdkafka's settings of what a user gave, over those that the tool wants."""
    from moldau.cli.librdkafka import client_config

    given = client_config(options, **settings)
    if given["client.id"] == CLIENT_ID:
        given["client.id"] = client_id
    return translated(given)


def translated(given: Mapping[str, Any]) -> dict[str, Any]:
    found = {_RENAMED.get(key, key): value for key, value in given.items() if key not in _JAVA_ALONE}
    if "buffer.memory" in found:
        found["queue.buffering.max.kbytes"] = _kib(found.pop("buffer.memory"), key="buffer.memory")
    if "partition.assignment.strategy" in found:
        found["partition.assignment.strategy"] = assignors(str(found["partition.assignment.strategy"]))
    return found


def _kib(value: object, *, key: str) -> int:
    if not str(value).isdecimal():
        raise UsageError(f"{key}={value}: expected a number of bytes")
    return max(1, int(str(value)) // _KIB)


def assignors(names: str) -> str:
    """Java's classes, or librdkafka's names for them."""
    found = []
    for name in names.split(","):
        short = name.strip().rpartition(".")[2]
        if short not in _ASSIGNORS and short not in _ASSIGNORS.values():
            raise UsageError(f"unknown assignor {name.strip()!r}; librdkafka has {', '.join(_ASSIGNORS)}")
        found.append(_ASSIGNORS.get(short, short))
    return ",".join(found)


def warn_of_old_option(old: str, new: str) -> None:
    print(
        f"Option {old} has been deprecated and will be removed in a future version. Use {new} instead.", file=sys.stderr
    )
