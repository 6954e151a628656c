"""The long run: `scripts/spark-exactly-once [--records N] [--faults N] [--seed N] [--broker apache] [--only KIND]`."""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.spark.exactly_once.chaos import Chaos
from tests.spark.exactly_once.cluster import SPECULATION, running_cluster
from tests.spark.exactly_once.plan import Query, fill, queries
from tests.spark.exactly_once.servers import BROKERS
from tests.spark.tables.postgresql import postgresql_server
from tests.spark.tables.sinks import KINDS
from tests.spark.tables.streams import forget_newest_commit
from tests.spark.topics import Topics

FAULTS = ("driver", "worker", "broker", "database")
BATCHES = 20
PARTITIONS = 2


def event_log(folder: Path) -> dict[str, str]:
    folder.mkdir()
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }


def task_starts(folder: Path) -> Iterator[dict[str, object]]:
    for path in folder.iterdir():
        for line in path.read_text(errors="replace").splitlines():
            # The last line of a driver that was killed may be half a line.
            if line.startswith('{"Event":"SparkListenerTaskStart"') and line.endswith("}"):
                yield json.loads(line)["Task Info"]


def judge(made: Sequence[Query], records: int, *, exact: bool) -> bool:
    """Whether every sink holds what it should: each record once, or, for the control, some twice and none lost."""
    good = True
    for query in made:
        arrived = query.arrived(records)
        good &= arrived.is_exact if exact else arrived.duplicates > 0 and arrived.missing == 0
        print(
            f"  {query.kind:12} {records} records in {query.done()} batches: {arrived.missing} missing, "
            f"{arrived.duplicates} duplicates, {arrived.unknown} unknown, {len(query.sink.staged())} left behind",
            flush=True,
        )
    return good


def run_all(chaos: Chaos, faults: Sequence[str]) -> None:
    began = time.monotonic()
    chaos.run(faults, batches=BATCHES * len(chaos.queries))
    for query in chaos.queries:
        forget_newest_commit(query.checkpoint)
    chaos.run([], batches=0)
    assert all(query.planned() == query.done() for query in chaos.queries), "a batch was not run again"
    told = chaos.told
    print(f"  killed: {dict(Counter(each.split()[0] for each in told.kills))}: {'; '.join(told.kills)}")
    print(f"  {told.starts} starts of the driver, {told.failures} failures by themselves; the newest commit of every")
    print(f"  query deleted and run again; {time.monotonic() - began:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--faults", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default=",".join(("topic", *KINDS)))
    parser.add_argument("--broker", choices=BROKERS, default="moldau")
    parser.add_argument("--skip-control", action="store_true")
    asked = parser.parse_args()
    # Whoever ends this run by a signal must not leave a cluster behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    chance = random.Random(asked.seed)
    faults = [FAULTS[number % len(FAULTS)] for number in range(asked.faults)]
    with tempfile.TemporaryDirectory(prefix="moldau-once-") as name, postgresql_server() as server:
        folder = Path(name)
        broker = BROKERS[asked.broker](folder / "broker")
        try:
            topics = Topics(broker.bootstrap)
            source = fill(topics, records=asked.records, partitions=PARTITIONS)

            def made(delivery: str, straggle_s: float) -> list[Query]:
                return queries(
                    topics,
                    source,
                    folder,
                    url=server.url,
                    batch_records=asked.records // BATCHES,
                    pause_s=0.2,
                    straggle_s=straggle_s,
                    kinds=asked.only.split(","),
                    delivery=delivery,
                )

            print(f"exactly once: two hosts, speculation, broker {asked.broker}, seed {asked.seed}", flush=True)
            with running_cluster(folder) as cluster:
                exact = Chaos(
                    made("exactly-once", 2.5),
                    broker,
                    chance,
                    folder / "output.txt",
                    cluster.master,
                    config={**SPECULATION, **event_log(folder / "events")},
                    cluster_pids=cluster.pids,
                    database=server,
                )
                run_all(exact, faults)
            starts = Counter(bool(task["Speculative"]) for task in task_starts(folder / "events"))
            print(f"  {starts[True]} speculative tasks beside {starts[False]} others")
            good = judge(exact.queries, asked.records, exact=True) and starts[True] > 0
            if not asked.skip_control:
                print("the control, at least once: local[2]", flush=True)
                control = Chaos(
                    made("at-least-once", 0.2), broker, chance, folder / "output.txt", "local[2,8]", database=server
                )
                run_all(control, FAULTS)
                good &= judge(control.queries, asked.records, exact=False)
        finally:
            broker.stop()
    sys.exit(None if good else "not as it should be")


if __name__ == "__main__":
    main()
