"""A broker in a process of its own for tests over the wire: Moldau, or Apache Kafka, which every test must pass on.

Or several: `moldau*3` is a cluster of three, whose topics have three replicas unless a test wants something else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import moldau
from tests.apache_kafka import ApacheKafka
from tests.clusters import running_cluster

PROJECT = Path(__file__).parents[1]


@contextmanager
def running_broker(kind: str, *, properties: Mapping[str, str] | None = None) -> Iterator[str]:
    """The bootstrap address of a fresh broker of that kind, for the length of the block.

    An address instead of a kind is a broker that somebody else runs, and `properties` are then that somebody's affair.
    """
    name, count = kind.partition("*")[0], count_of(kind)
    if count > 1:
        replicated = {"default.replication.factor": str(count), "min.insync.replicas": str(count - 1)}
        with running_cluster(name, count=count, properties={**replicated, **(properties or {})}) as several:
            yield several.bootstrap_servers
    elif name == "moldau":
        with moldau.run(overrides=properties or {}) as broker:
            yield broker.bootstrap_servers
    elif name == "apache":
        with ApacheKafka(properties=properties) as apache:
            yield apache.bootstrap
    else:
        yield kind


def count_of(kind: str) -> int:
    return int(kind.partition("*")[2] or 1)
