"""Two pipelines in a row: orders joined with customers that change, into a topic, and from there into tables.

Orders go on, `--records` of them at least, until all kills have happened.

`scripts/spark-exactly-once chain [--records N] [--faults N] [--seed N] [--broker apache]`
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from tests.spark.exactly_once.feeding import Feeder
from tests.spark.exactly_once.pipelines import PipelineChaos, PipelineProcess
from tests.spark.exactly_once.servers import BROKERS, CrashingBroker
from tests.spark.topics import Topics

FIRST = """
    set bootstrap.servers = '{bootstrap}';
    create stream orders from topic '{orders}'
        with (valueFormat = json, valueSchema = 'id long, customer string', maxOffsetsPerTrigger = {batch});
    create table customers from topic '{customers}' key (id)
        with (valueFormat = json, valueSchema = 'id string, version long');
    create sink enriched into topic '{enriched}' key (id)
        as select o.id, o.customer, c.version from orders o left join customers c on o.customer = c.id;
"""
SECOND = """
    set bootstrap.servers = '{bootstrap}';
    create stream enriched from topic '{enriched}'
        with (valueFormat = json, valueSchema = 'id long, customer string, version long');
    create sink lake into delta '{lake}' as select id, customer, version from enriched;
    create sink results into topic '{results}' key (id) as select id, customer, version from enriched;
"""

Row = dict[str, Any]


class Chain:
    """The two files, what they read and where their results are."""

    def __init__(self, topics: Topics, folder: Path, *, batch: int) -> None:
        self.topics = topics
        self.orders = topics.create("orders", partitions=2)
        self.customers = topics.create("customers", config={"cleanup.policy": "compact"})
        self.enriched = topics.create("enriched", partitions=2)
        self.results = topics.create("results", partitions=2)
        self.lake = folder / "lake"
        names = {**vars(self), "bootstrap": topics.bootstrap, "batch": batch}
        self.pipelines = []
        for name, text in {"first": FIRST, "second": SECOND}.items():
            path = folder / f"{name}.sql"
            path.write_text(text.format(**names))
            self.pipelines.append(PipelineProcess(path))

    def rows_of_topic(self, topic: str) -> list[Row]:
        return [json.loads(value or b"null") for value in self.topics.values(topic)]

    def rows_of_lake(self) -> list[Row]:
        if not (self.lake / "_delta_log").exists():
            return []
        found: list[Row] = DeltaTable(self.lake).to_pyarrow_table().to_pylist()
        return found

    def has_all(self, records: int) -> bool:
        return all(len(rows) >= records for rows in (self.rows_of_lake(), self.rows_of_topic(self.results)))

    def judge(self, feeder: Feeder) -> bool:
        records = feeder.sent
        versions = {row["id"]: row["version"] for row in self.rows_of_topic(self.enriched)}
        unknown = list(versions.values()).count(None)
        stale = sum(version is not None and version < feeder.least_version(id_) for id_, version in versions.items())
        print(f"  customers in {len(set(versions.values()))} of {feeder.versions} versions", end=": ")
        print(f"{unknown} unknown, {stale} older than the order")
        good = (unknown, stale) == (0, 0)
        for name, rows in {
            "enriched": self.rows_of_topic(self.enriched),
            "results": self.rows_of_topic(self.results),
            "lake": self.rows_of_lake(),
        }.items():
            good &= is_exact(name, rows, records, versions)
        return good


def is_exact(name: str, rows: Iterable[Row], records: int, versions: dict[int, int | None]) -> bool:
    rows = list(rows)
    counted = Counter(row["id"] for row in rows)
    missing = sum(each not in counted for each in range(records))
    doubled = counted.total() - len(counted)
    aborted = sum(each >= records for each in counted)
    other = sum(row["version"] != versions.get(row["id"]) for row in rows)
    print(f"  {name:9} {records} records: {missing} missing, {doubled} doubled, {aborted} aborted, {other} differ")
    return (missing, doubled, aborted, other) == (0, 0, 0, 0)


def run(broker: CrashingBroker, folder: Path, chance: random.Random, *, records: int, faults: int) -> bool:
    began_s = time.monotonic()
    chain = Chain(Topics(broker.bootstrap), folder, batch=max(1, records // 20))
    feeder = Feeder(chain.topics, chain.orders, chain.customers, per_transaction=max(1, records // 200))
    with feeder, PipelineChaos(chain.pipelines, broker, chance) as chaos:
        chaos.kill(faults)
        feeder.end(records)
        chaos.finish(lambda: chain.has_all(feeder.sent))
    print(f"  killed: {'; '.join(chaos.kills)}; the producer failed {feeder.failures} times")
    print(f"  the newest commit of every query deleted and run again; {time.monotonic() - began_s:.0f} s", flush=True)
    return chain.judge(feeder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--faults", type=int, default=9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--broker", choices=BROKERS, default="moldau")
    asked = parser.parse_args()
    # Whoever ends this run by a signal must not leave pipelines and a broker behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    print(f"a chain of pipelines, broker {asked.broker}, seed {asked.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="moldau-chain-") as name:
        broker = BROKERS[asked.broker](Path(name, "broker"))
        try:
            good = run(broker, Path(name), random.Random(asked.seed), records=asked.records, faults=asked.faults)
        finally:
            broker.stop()
    sys.exit(None if good else "not as it should be")


if __name__ == "__main__":
    main()
