"""Several brokers for tests over the wire: Moldau's, or Apache Kafka's, which every test must pass on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

import moldau
from tests.apache_cluster import ApacheCluster


class Cluster(Protocol):
    """What both have."""

    @property
    def bootstrap_servers(self) -> str: ...

    def kill(self, broker_id: int, /) -> None: ...

    def stop(self, broker_id: int, /) -> None: ...

    def restart(self, broker_id: int, /) -> None: ...


@contextmanager
def running_cluster(
    kind: str, *, count: int = 3, first_id: int = 1, properties: Mapping[str, object] | None = None
) -> Iterator[Cluster]:
    if kind == "moldau":
        with moldau.run(brokers=count, overrides={"node.id": first_id, **(properties or {})}) as ours:
            yield ours
    elif kind == "apache":
        with ApacheCluster(count=count, first_id=first_id, properties=properties) as apache:
            yield apache
    else:
        raise ValueError(f"there is no cluster of kind {kind!r}: moldau or apache")
