"""The core of it over Spark Connect, to separate executors: nothing here shares a process with the tests."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.conftest import command
from tests.spark.connecting import connect_server, connected
from tests.spark.reading.test_batch_read import read
from tests.spark.tables.sinks import sink_of
from tests.spark.topics import Topics
from tests.spark.writing.test_sink import forget_last_commit, stream_copy, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(900)]


UPSERTS = """\
set bootstrap.servers = '{bootstrap}';
create stream numbers from topic '{topic}' with (valueFormat = json, valueSchema = 'id bigint, n bigint');
create sink newest into database 'newest' key (id) upsert with (url = '{url}', orderBy = 'n')
    as select id, n from numbers;
"""


COPY = """\
from pyspark import pipelines as dp

SERVERS = "{bootstrap}"
dp.create_sink("copies", "moldau", {{"kafka.bootstrap.servers": SERVERS, "topic": "{target}"}})


@dp.append_flow(target="copies")
def copy():
    records = spark.readStream.format("moldau").option("kafka.bootstrap.servers", SERVERS)
    return records.option("subscribe", "{source}").option("startingOffsets", "earliest").load().select("value")
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server("local-cluster[2,1,1024]", tmp_path_factory.mktemp("connect")) as url:
        yield url


@pytest.fixture(scope="module")
def remote(server: str) -> Iterator[SparkSession]:
    with connected(server) as session:
        yield session  # type: ignore[misc]


def test_rows_there_and_back(remote: SparkSession, topics: Topics) -> None:
    topic = topics.create(partitions=3)
    frame = remote.range(1000).selectExpr("cast(id as string) as key", "concat('v', id) as value")
    write(frame, topics, topic=topic, delivery="exactly-once")
    topics.transaction(topic, [b"dropped"], commit=False)
    found = read(remote, topics, topic, minPartitions="6", **{"kafka.isolation.level": "read_committed"})
    rows = [(int(row.key), row.value.decode()) for row in found.collect()]
    assert sorted(rows) == [(each, f"v{each}") for each in range(1000)]


def test_tasks_run_in_executors(remote: SparkSession, topics: Topics) -> None:
    topic = topics.create(partitions=2)
    topics.produce(topic, [b"x"] * 10, partition=0)
    topics.produce(topic, [b"x"] * 10, partition=1)

    def place(batches: Iterator[Any]) -> Iterator[Any]:
        import os

        import pyarrow as pa

        for batch in batches:
            folder = os.environ.get("SPARK_EXECUTOR_DIRS", "none")
            yield pa.RecordBatch.from_arrays([pa.array([folder] * batch.num_rows)], names=["folder"])

    folders = read(remote, topics, topic).mapInArrow(place, "folder string").collect()
    assert len(folders) == 20
    assert all("executor-" in row.folder for row in folders)


def test_typed_columns_and_headers(remote: SparkSession, topics: Topics) -> None:
    topic = topics.create()
    topics.produce(topic, [b'{"id": 1, "name": "a"}'], headers=[("h", b"1")])
    options = {"valueFormat": "json", "valueSchema": "id long, name string", "includeHeaders": "true"}
    (row,) = read(remote, topics, topic, **options).select("value.*", "headers").collect()
    assert (row.id, row.name, [tuple(header) for header in row.headers]) == (1, "a", [("h", b"1")])


def test_a_batch_that_runs_again_is_there_once(remote: SparkSession, topics: Topics, checkpoint: Path) -> None:
    source, target = topics.create(partitions=2), topics.create(partitions=2)
    topics.produce(source, [b"%d" % each for each in range(250)])
    stream_copy(remote, topics, source, checkpoint, topic=target)
    forget_last_commit(checkpoint)
    topics.produce(source, [b"%d" % each for each in range(250, 300)])
    stream_copy(remote, topics, source, checkpoint, topic=target)
    assert Counter(topics.values(target)) == Counter(b"%d" % each for each in range(300))
    # The group of the query, and none that was left behind.
    offsets = [topics.group_offsets(group) for group in topics.groups() if group.startswith("moldau-spark-")]
    assert any(sum(group.get((source, partition), 0) for partition in range(2)) == 300 for group in offsets)


def test_a_stream_into_a_table(remote: SparkSession, topics: Topics, tmp_path: Path) -> None:
    source, sink = topics.create(partitions=2), sink_of("delta", tmp_path, name="orders", url=None)
    topics.produce(source, [b"%d" % each for each in range(100)])
    frame = (
        remote.readStream.format("moldau")
        .options(**{"kafka.bootstrap.servers": topics.bootstrap, "subscribe": source, "startingOffsets": "earliest"})
        .load()
    )
    rows = frame.selectExpr("cast(cast(value as string) as bigint) as id")
    writing = rows.writeStream.format(sink.format).options(**sink.options)
    query = writing.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    assert query.awaitTermination(240)
    assert sink.ids() == list(range(100))


def test_a_wrong_option_is_named(remote: SparkSession, topics: Topics) -> None:
    topic = topics.create()
    with pytest.raises(Exception, match="startingOffsets was probably meant"):
        read(remote, topics, topic, startingOffset="earliest").collect()


def test_a_project_of_declarative_pipelines(server: str, topics: Topics, tmp_path: Path) -> None:
    pytest.importorskip("yaml", reason="the extra `pipelines` is not installed")
    source, target = topics.create(partitions=2), topics.create()
    topics.produce(source, [b"%d" % each for each in range(100)])
    (tmp_path / "spark-pipeline.yml").write_text(
        f"name: {source}\nstorage: {(tmp_path / 'storage').as_uri()}\nlibraries:\n  - glob: {{include: flows.py}}\n"
    )
    (tmp_path / "flows.py").write_text(COPY.format(bootstrap=topics.bootstrap, source=source, target=target))
    run = command("pipeline", "run", str(tmp_path), "--once", "--master", server)
    ended = subprocess.run(run, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stderr
    assert Counter(topics.values(target)) == Counter(b"%d" % each for each in range(100))
    assert "lag 0" in ended.stderr


def test_a_pipeline_upserts(server: str, topics: Topics, tmp_path: Path) -> None:
    topic, database = topics.create(partitions=2), tmp_path / "newest.db"
    topics.produce(topic, [json.dumps({"id": each % 10, "n": each}).encode() for each in range(100)])
    file = tmp_path / "upserts.sql"
    file.write_text(UPSERTS.format(bootstrap=topics.bootstrap, topic=topic, url=f"sqlite:///{database}"))
    run = command("pipeline", "run", str(file), "--once", "--restarts", "0", "--master", server)
    ended = subprocess.run(run, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stderr
    rows = sqlite3.connect(database).execute("select id, n from newest order by id").fetchall()
    assert rows == [(each, 90 + each) for each in range(10)]
