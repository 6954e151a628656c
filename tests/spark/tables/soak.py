"""The long version of the exactly-once tests: many records, separate executors, speculative tasks, kills at any moment.

`soak.py run …` is the driver that gets killed; without arguments this is the judge: `soak.py [RECORDS] [KILLS] [SEED]`.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.spark.tables.postgresql import running_postgresql
from tests.spark.tables.sinks import KINDS, Sink, sink_of
from tests.spark.tables.streams import put_batches, read_batches, start

PROJECT = Path(__file__).parents[3]
BATCHES = 10
RUN_S_MAX = 1800


def drive(queries: list[dict[str, Any]]) -> None:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
    for name, value in (
        ("spark.sql.shuffle.partitions", "4"),
        ("spark.speculation", "true"),
        ("spark.speculation.interval", "50ms"),
        ("spark.speculation.multiplier", "1.05"),
        ("spark.speculation.quantile", "0.25"),
        ("spark.driver.host", "127.0.0.1"),
    ):
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    started = []
    for query in queries:
        frame = read_batches(session, Path(query["input"]), tasks=4)
        started.append(start(frame, query["format"], query["options"], Path(query["checkpoint"])))
    for each in started:
        each.awaitTermination()


def run_and_kill(queries: list[dict[str, Any]], *, after_s: float | None) -> bool:
    """Whether the driver came to its end before it was killed; children of its group die with it."""
    driver = subprocess.Popen(
        [sys.executable, "-m", "tests.spark.tables.soak", "run", json.dumps(queries)],
        cwd=PROJECT,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return driver.wait(RUN_S_MAX if after_s is None else after_s) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()


def is_exact(sink: Sink, ids: list[int]) -> bool:
    counted = Counter(sink.ids())
    missing = sum(1 for each in ids if each not in counted)
    extra = sum(counted.values()) - len(counted)
    left = len(sink.staged())
    print(f"{sink.kind:12} {len(ids)} records, {missing} missing, {extra} duplicates, {left} left behind")
    return counted == Counter(ids)


def main(records: int, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    with running_postgresql() as url, tempfile.TemporaryDirectory(prefix="moldau-soak-") as name:
        folder = Path(name)
        each = records // BATCHES
        ids = put_batches(folder / "input", *(range(n * each, (n + 1) * each) for n in range(BATCHES)))
        sinks = [
            sink_of(kind, folder, name=f"orders_{kind}", url=url if kind == "postgresql" else None) for kind in KINDS
        ]
        queries = [
            {
                "format": sink.format,
                "options": sink.options,
                "input": str(folder / "input"),
                "checkpoint": str(folder / f"checkpoint-{sink.kind}"),
            }
            for sink in sinks
        ]
        for number in range(kills):
            after_s = chance.uniform(15, 60)
            ended = run_and_kill(queries, after_s=after_s)
            print(f"kill {number + 1}: after {after_s:.0f} s{', but it had ended' if ended else ''}", flush=True)
            if ended:
                break
        began = time.monotonic()
        assert run_and_kill(queries, after_s=None), "the last run failed"
        print(f"ran to the end in {time.monotonic() - began:.0f} s")
        if False in [is_exact(sink, ids) for sink in sinks]:
            sys.exit("not exactly once")


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        drive(json.loads(sys.argv[2]))
    else:
        numbers = [int(text) for text in sys.argv[1:]]
        main(*(*numbers, *(200_000, 6, 1)[len(numbers) :]))
