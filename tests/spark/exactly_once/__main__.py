"""The long run: from a topic to every sink, on two hosts, while driver, worker, broker and database are killed.

`scripts/spark-exactly-once [--records N] [--batches N] [--faults N] [--seed N] [--broker apache] [--checkpoints s3]
[--only KIND]`
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.spark.exactly_once.chaos import Chaos
from tests.spark.exactly_once.checkpoints import Checkpoint, StoredCheckpoint
from tests.spark.exactly_once.cluster import SPECULATION, running_cluster
from tests.spark.exactly_once.plan import Query, fill, queries
from tests.spark.exactly_once.servers import BROKERS, CrashingBroker
from tests.spark.object_store import PACKAGES_SETTINGS, running_object_store
from tests.spark.tables.postgresql import Server, postgresql_server
from tests.spark.tables.sinks import KINDS
from tests.spark.topics import Topics

FAULTS = ("driver", "worker", "broker", "database")
PARTITIONS = 2
BUCKET = "checkpoints"


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


def run_all(chaos: Chaos, faults: Sequence[str], *, batches: int) -> None:
    began = time.monotonic()
    chaos.run(faults, batches=batches * len(chaos.queries))
    for query in chaos.queries:
        query.checkpoint.forget_newest_commit()
    chaos.run([], batches=0)
    assert all(query.planned() == query.done() for query in chaos.queries), "a batch was not run again"
    told = chaos.told
    print(f"  killed: {dict(Counter(each.split()[0] for each in told.kills))}: {'; '.join(told.kills)}")
    print(f"  {told.starts} starts of the driver, {told.failures} failures by themselves; the newest commit of every")
    print(f"  query deleted and run again; {time.monotonic() - began:.0f} s", flush=True)


@dataclass(frozen=True, slots=True)
class Run:
    """What both parts of a run, with and without exactly once, share."""

    asked: argparse.Namespace
    folder: Path
    broker: CrashingBroker
    database: Server
    topics: Topics
    source: str
    chance: random.Random

    @property
    def kinds(self) -> list[str]:
        return str(self.asked.only).split(",")

    @property
    def faults(self) -> list[str]:
        return [fault for fault in FAULTS if fault != "database" or "postgresql" in self.kinds]

    def queries(
        self, delivery: str, *, straggle_s: float, checkpoint_of: Callable[[str], Checkpoint] | None = None
    ) -> list[Query]:
        return queries(
            self.topics,
            self.source,
            self.folder,
            url=self.database.url,
            batch_records=-(-self.asked.records // self.asked.batches),
            pause_s=0.2,
            straggle_s=straggle_s,
            kinds=self.kinds,
            delivery=delivery,
            checkpoint_of=checkpoint_of,
        )

    def chaos(self, made: Sequence[Query], master: str, **more: Any) -> Chaos:
        output = self.folder / "output.txt"
        return Chaos(made, self.broker, self.chance, output, master, database=self.database, **more)

    def exact(self) -> bool:
        """On a cluster, with speculation."""
        asked, events = self.asked, self.folder / "events"
        print(f"exactly once: two hosts, speculation, broker {asked.broker}, seed {asked.seed}", flush=True)
        print(f"  checkpoints: {asked.checkpoints}", flush=True)
        config = {**SPECULATION, **event_log(events)}
        with ExitStack() as stack:
            cluster = stack.enter_context(running_cluster(self.folder))
            checkpoint_of = None
            if asked.checkpoints == "s3":
                store = stack.enter_context(running_object_store())
                store.create_bucket(BUCKET)
                config |= {**PACKAGES_SETTINGS, **store.spark_settings}
                checkpoint_of = partial(StoredCheckpoint, store, BUCKET)
            made = self.queries("exactly-once", straggle_s=2.5, checkpoint_of=checkpoint_of)
            chaos = self.chaos(made, cluster.master, config=config, cluster_pids=cluster.pids)
            run_all(
                chaos, [self.faults[number % len(self.faults)] for number in range(asked.faults)], batches=asked.batches
            )
            starts = Counter(bool(task["Speculative"]) for task in task_starts(events))
            print(f"  {starts[True]} speculative tasks beside {starts[False]} others")
            return judge(made, asked.records, exact=True) and starts[True] > 0

    def control(self) -> bool:
        print("the control, at least once: local[2]", flush=True)
        made = self.queries("at-least-once", straggle_s=0.2)
        run_all(self.chaos(made, "local[2,8]"), self.faults, batches=self.asked.batches)
        return judge(made, self.asked.records, exact=False)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--faults", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default=",".join(("topic", *KINDS)))
    parser.add_argument("--broker", choices=BROKERS, default="moldau")
    parser.add_argument("--checkpoints", choices=("local", "s3"), default="local")
    parser.add_argument("--skip-control", action="store_true")
    return parser.parse_args()


def main() -> None:
    asked = arguments()
    # Whoever ends this run by a signal must not leave a cluster behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    with tempfile.TemporaryDirectory(prefix="moldau-once-") as name, postgresql_server() as server:
        folder = Path(name)
        broker = BROKERS[asked.broker](folder / "broker")
        try:
            topics = Topics(broker.bootstrap)
            source = fill(topics, records=asked.records, partitions=PARTITIONS)
            run = Run(asked, folder, broker, server, topics, source, random.Random(asked.seed))
            good = run.exact()
            if not asked.skip_control:
                good &= run.control()
        finally:
            broker.stop()
    sys.exit(None if good else "not as it should be")


if __name__ == "__main__":
    main()
