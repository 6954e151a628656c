"""From a topic to every sink while a Python worker, the broker and the driver are killed in mid-batch, in this order.

`scripts/spark-exactly-once` is the long version, with separate hosts, speculative tasks and a control that repeats.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.exactly_once.chaos import Chaos
from tests.spark.exactly_once.plan import Arrived, fill, queries
from tests.spark.exactly_once.servers import CrashingMoldau
from tests.spark.tables.postgresql import running_postgresql
from tests.spark.topics import Topics

RECORDS = 20_000
BATCHES = 3


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[CrashingMoldau]:
    running = CrashingMoldau(tmp_path / "data")
    yield running
    running.stop()


@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(900)
def test_each_record_arrives_once_whatever_is_killed(broker: CrashingMoldau, tmp_path: Path) -> None:
    topics = Topics(broker.bootstrap)
    source = fill(topics, records=RECORDS, partitions=2)
    with running_postgresql() as url:
        made = queries(
            topics, source, tmp_path, url=url, batch_records=RECORDS // BATCHES + 1, pause_s=0.2, straggle_s=0.2
        )
        chaos = Chaos(made, broker, random.Random(5), tmp_path / "output.txt", "local[2,8]", runs_s_max=800)
        chaos.run(["worker", "broker", "driver"], batches=BATCHES * len(made))
        assert [kill.split()[0] for kill in chaos.told.kills] == ["worker", "broker", "driver"]
        assert chaos.told.starts >= 2, "the driver was not killed"
        assert {query.kind: query.arrived(RECORDS) for query in made} == {
            query.kind: Arrived(missing=0, duplicates=0, unknown=0) for query in made
        }, chaos.told
