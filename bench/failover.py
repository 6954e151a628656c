"""From kill -9 of a leader to the next one, without any client's timer: three brokers on SQLite and on ZooKeeper.

    python -m bench.failover                                      ten kills on each store (about 3 minutes on two cores)
    python -m bench.failover --kills 3 --stores zookeeper

The topic has one partition, three replicas and min.insync.replicas=2. Both living brokers are asked for Metadata over
connections that were there before the kill, some hundred times a second each, until one names another leader; that one
is sent a record with acks=all at once, again while it refuses. ZooKeeper is three servers on this machine.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import moldau
from bench.clusters import PROPERTIES, SETTLE_S, partitions
from moldau.wire.batch import build_batch
from moldau.wire.messages import MetadataRequest, MetadataResponse, ProduceRequest, ProduceResponse
from moldau.wire.messages.metadata import MetadataRequestTopic
from moldau.wire.messages.produce import PartitionProduceData, TopicProduceData
from moldau.wire.records import Record
from tests.broker.handlers.wire import Wire
from tests.store.ensemble import running_ensemble

TOPIC = "mortal"
METADATA_VERSION, PRODUCE_VERSION = 12, 9
PAUSE_S = 0.002
FAILOVER_S_MAX = 60.0


class Failover(NamedTuple):
    named_ms: float
    """Until another leader was in Metadata."""
    acknowledged_ms: float
    was_controller: bool


def leader_seen(connection: Wire) -> int:
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False)
    seen = connection.ask(asked, METADATA_VERSION, MetadataResponse)
    return next((each.leader_id for each in partitions(seen, TOPIC)), -1)


def is_acknowledged(connection: Wire) -> bool:
    data = PartitionProduceData(index=0, records=build_batch([Record(0, 0, None, b"value")]))
    topic = TopicProduceData(name=TOPIC, partition_data=[data])
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])
    answer = connection.ask(request, PRODUCE_VERSION, ProduceResponse)
    return answer.responses[0].partition_responses[0].error_code == 0


def new_leader(connections: Mapping[int, Wire], victim: int) -> int:
    deadline_s = time.monotonic() + FAILOVER_S_MAX
    while time.monotonic() < deadline_s:
        for connection in connections.values():
            leader = leader_seen(connection)
            if leader in connections:
                return leader
        time.sleep(PAUSE_S)
    raise AssertionError(f"nobody leads what broker {victim} led")


def fail_over(cluster: moldau.EmbeddedCluster) -> Failover:
    victim = cluster.leader_of(TOPIC)
    was_controller = cluster.controller == victim
    with ExitStack() as open_connections:
        connections = {
            each: open_connections.enter_context(closing(Wire(broker.bootstrap_servers)))
            for each, broker in cluster.brokers.items()
            if each != victim
        }
        for connection in connections.values():
            assert leader_seen(connection) == victim
        killed_s = time.monotonic()
        os.kill(cluster.brokers[victim].pid, signal.SIGKILL)
        leader = new_leader(connections, victim)
        named_s = time.monotonic()
        while not is_acknowledged(connections[leader]):
            assert time.monotonic() < killed_s + FAILOVER_S_MAX, f"broker {leader} leads and takes no record"
            time.sleep(PAUSE_S)
        acknowledged_s = time.monotonic()
    return Failover((named_s - killed_s) * 1_000, (acknowledged_s - killed_s) * 1_000, was_controller)


def until_in_sync(cluster: moldau.EmbeddedCluster) -> None:
    """As every broker sees it, so that the next one that is killed leaves enough of them."""
    deadline_s = time.monotonic() + SETTLE_S
    for broker in cluster.brokers.values():
        with closing(Wire(broker.bootstrap_servers)) as connection:
            while True:
                seen = connection.ask(MetadataRequest(topics=None), METADATA_VERSION, MetadataResponse)
                if all(len(each.isr_nodes) == len(cluster.brokers) for each in partitions(seen, TOPIC)):
                    break
                assert time.monotonic() < deadline_s, f"replicas do not come back: {seen}"
                time.sleep(PAUSE_S)


def measure(store: str, overrides: Mapping[str, object], kills: int) -> list[Failover]:
    found = []
    with moldau.run(brokers=3, overrides={**PROPERTIES, **overrides}, timeout_s=SETTLE_S) as cluster:
        cluster.create_topic(TOPIC, partitions=1, replication_factor=3)
        for number in range(kills):
            until_in_sync(cluster)
            failover = fail_over(cluster)
            found.append(failover)
            named = "leader and controller" if failover.was_controller else "leader"
            sys.stderr.write(
                f"{store}, kill {number + 1} ({named}): a leader after {failover.named_ms:.0f} ms, "
                f"acknowledged after {failover.acknowledged_ms:.0f} ms\n"
            )
            victim = next(each for each, broker in cluster.brokers.items() if not broker.is_running)
            cluster.restart(victim, timeout_s=SETTLE_S)
    return found


@contextmanager
def sqlite() -> Iterator[Mapping[str, object]]:
    yield {}


@contextmanager
def zookeeper() -> Iterator[Mapping[str, object]]:
    with tempfile.TemporaryDirectory(prefix="moldau-failover-") as folder, running_ensemble(Path(folder)) as ensemble:
        yield {"zookeeper.connect": f"{ensemble.connect}/moldau"}


STORES = MappingProxyType({"sqlite": sqlite, "zookeeper": zookeeper})


def row(store: str, title: str, values: list[float]) -> str:
    every = ", ".join(f"{value:.0f}" for value in values)
    return f"| {store} | {title} | {statistics.median(values):.0f} | {max(values):.0f} | {every} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10, help="of leaders on each store")
    parser.add_argument("--stores", default=",".join(STORES), help="some of %(default)s")
    options = parser.parse_args()
    lines = ["| store | kill -9 of a leader, ms until | median | max | all |", "|---|---|---|---|---|"]
    kinds: Mapping[str, Callable[[Failover], float]] = {
        "another one is in Metadata": lambda each: each.named_ms,
        "a record with acks=all is acknowledged": lambda each: each.acknowledged_ms,
    }
    for store in options.stores.split(","):
        with STORES[store]() as overrides:
            found = measure(store, overrides, options.kills)
        lines += [row(store, title, [figure(each) for each in found]) for title, figure in kinds.items()]
    sys.stdout.write("\n".join([*lines, f"{os.cpu_count()} cores", ""]))


if __name__ == "__main__":
    main()
