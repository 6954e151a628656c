"""Upserts into lake tables in rounds: whatever the batch's size, the driver holds a share of it."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from moldau.spark.tables import upserts
from moldau.spark.tables.lakes import LakeTarget
from moldau.spark.tables.staging import StagingArea
from moldau.spark.tables.writing import Step
from tests.spark.tables.conftest import MakeSink
from tests.spark.tables.frames import batch, frame, write

pytestmark = pytest.mark.xdist_group("tables")

COLUMNS = "id bigint, name string, state string, op string"
KINDS = ("delta", "iceberg")
PROJECT = Path(__file__).parents[3]


@pytest.mark.parametrize("kind", KINDS)
def test_many_rounds_do_what_one_does(make_sink: MakeSink, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeded changes of rows by two keys, in batches of several tasks, against a dictionary."""
    monkeypatch.setattr(upserts, "ROUND_BYTES", 2_000)
    chance, kept = random.Random(11), dict[tuple[int, str], str]()
    sink = make_sink(kind)
    target = sink.target(frame(COLUMNS), keys="id,name", operationColumn="op", targetFileSize="4k")
    for number in range(6):
        rows = [
            (chance.randrange(40), chance.choice("abc"), f"{number}-{place}", chance.choice("uuud"))
            for place in range(120)
        ]
        write(target, number, batch(COLUMNS, *rows[:70]), batch(COLUMNS, *rows[70:]))
        for key, name, state, operation in rows:
            kept.pop((key, name), None)
            if operation == "u":
                kept[key, name] = state
    assert {(row["id"], row["name"]): row["state"] for row in sink.rows()} == kept
    assert len(sink.rows()) == len(kept)
    assert sink.staged() == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_without_a_changed_key_stays_as_it_is(make_sink: MakeSink, kind: str) -> None:
    sink, columns = make_sink(kind), "id bigint, state string"
    target = sink.target(frame(columns), keys="id")
    for number, first in enumerate((0, 100, 200)):
        write(target, number, batch(columns, *((key, "new") for key in range(first, first + 10))))
    before = files_of(target)
    write(target, 3, batch(columns, (105, "paid"), (110, "new")))
    assert len(before & files_of(target)) == 2
    assert len(sink.rows()) == 31


def files_of(target: object) -> set[str]:
    assert isinstance(target, LakeTarget)
    return target.lake.open().file_names()


@pytest.mark.parametrize("keys", ["", "id"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_commit_whose_answer_was_lost_keeps_its_files(make_sink: MakeSink, kind: str, keys: str) -> None:
    """The driver tries again with the same staged files, finds the batch in the table, and cleans up after itself."""
    sink, area, columns = make_sink(kind), StagingArea("a query", 0), "id bigint, state string"
    target = sink.target(frame(columns), keys=keys)
    staged = [target.stage([batch(columns, (1, "new"))], area)]
    target.apply(staged, Step(area, overwrite=False))
    target.apply(staged, Step(area, overwrite=False))
    assert sink.rows() == [{"id": 1, "state": "new"}]


MEASURED = """
import resource, sys
import pyarrow as pa
from tests.spark.tables.frames import frame
from tests.spark.tables.sinks import sink_of
from moldau.spark.tables.staging import StagingArea
from moldau.spark.tables.writing import Step
from pathlib import Path

kind, folder, megabytes = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
target = sink_of(kind, folder, name="orders", url=None).target(frame("id bigint, text string"), keys="id")
area = StagingArea("a query", 0)

def batches(task):
    for part in range(megabytes // 8):
        ids = range((task * 1000 + part) * 1000, (task * 1000 + part) * 1000 + 1000)
        yield pa.record_batch({"id": pa.array(ids, pa.int64()), "text": [f"{each:>1000}" for each in ids]})

staged = [target.stage(batches(task), area) for task in range(8)]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
target.apply(staged, Step(area, overwrite=False))
target.apply([target.stage(batches(0), StagingArea("a query", 1))], Step(StagingArea("a query", 1), overwrite=False))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_the_memory_of_an_upsert_has_a_limit(kind: str, tmp_path: Path) -> None:
    """A batch three times as large takes about as much."""
    taken = []
    for megabytes in (400, 1200):
        folder = tmp_path / str(megabytes)
        command = [sys.executable, "-c", MEASURED, kind, str(folder), str(megabytes)]
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
        taken.append(int(done.stdout))
    print(f"{kind}: {taken} MiB more for batches of 400 and 1200 MiB")
    assert taken[1] < 1.3 * taken[0]


def test_files_of_another_writer_are_found_whatever_their_names(make_sink: MakeSink) -> None:
    """deltalake's own folders have values in them, escaped on the disk and once more in the log."""
    sink, columns = make_sink("delta"), "id bigint, region string"
    regions = ["a b/c=é%20&+?#", "plain", "ü"]
    written = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "region": regions})
    write_deltalake(sink.options["path"], written, partition_by=["region"])
    write(sink.target(frame(columns), keys="id"), 0, batch(columns, (1, "ü"), (3, "a b/c=é%20&+?#")))
    assert [(row["id"], row["region"]) for row in sink.rows()] == [(1, "ü"), (2, "plain"), (3, regions[0])]
    write_deltalake(sink.options["path"], written, mode="append")
    write(sink.target(frame(columns), keys="id"), 1, batch(columns, (1, "plain"), (2, "plain"), (3, "plain")))
    assert [(row["id"], row["region"]) for row in sink.rows()] == [(1, "plain"), (2, "plain"), (3, "plain")]
