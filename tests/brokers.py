"""A broker in a process of its own for tests over the wire: Moldau, or Apache Kafka, which every test must pass on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import moldau
from tests.apache_kafka import ApacheKafka

PROJECT = Path(__file__).parents[1]


@contextmanager
def running_broker(kind: str, *, properties: Mapping[str, str] | None = None) -> Iterator[str]:
    """The bootstrap address of a fresh broker of that kind, for the length of the block.

    An address instead of a kind is a broker that somebody else runs, and `properties` are then that somebody's affair.
    """
    if kind == "moldau":
        with moldau.run(overrides=properties or {}) as broker:
            yield broker.bootstrap_servers
    elif kind == "apache":
        with ApacheKafka(properties=properties) as apache:
            yield apache.bootstrap
    else:
        yield kind
