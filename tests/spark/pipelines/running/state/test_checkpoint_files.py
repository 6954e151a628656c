"""Which queries have their checkpoints written the quick way."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from moldau.spark.pipelines.running.state.checkpoint_files import QUICK, SETTING, may_be_quick, quick_checkpoint


@pytest.fixture
def stream(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate").option("rowsPerSecond", "10").load()


def run(frame: DataFrame, folder: Path) -> str:
    """One more batch of a query; how its checkpoint was written. The source has rows for whole seconds only."""
    before, deadline_s = batches(folder), time.monotonic() + 60
    while batches(folder) == before:
        assert time.monotonic() < deadline_s, "no batch"
        written_by = run_to_end(frame, folder)
    return written_by


def batches(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("offsets/*") if not path.name.startswith(".")}


def run_to_end(frame: DataFrame, folder: Path) -> str:
    sent = frame.writeStream.format("noop").option("checkpointLocation", str(folder))
    query: Any = sent.trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(60)
    finally:
        query.stop()
    return str(query._jsq.streamingQuery().offsetLog().fileManager().getClass().getName())


def test_a_query_without_state_goes_on_from_what_was_written_either_way(stream: DataFrame, tmp_path: Path) -> None:
    one = stream.where("value % 2 = 0")
    assert run(one, tmp_path) != QUICK
    with quick_checkpoint(one, str(tmp_path)):
        assert run(one, tmp_path) == QUICK
    assert run(one, tmp_path) != QUICK
    assert batches(tmp_path) == {"0", "1", "2"}


@pytest.mark.parametrize("log", ["offsets", "commits"])
def test_a_crash_between_a_file_and_its_checksum_loses_and_repeats_no_batch(
    stream: DataFrame, tmp_path: Path, log: str
) -> None:
    """The two are renamed one after the other."""
    one = stream.where("value % 2 = 0")
    with quick_checkpoint(one, str(tmp_path)):
        assert run(one, tmp_path) == QUICK
        planned = (tmp_path / "offsets/0").read_text()
        (tmp_path / log / ".0.crc").rename(tmp_path / log / "..0.5f1c.tmp.crc")
        if log == "offsets":  # the crash was before the batch, which is not done
            (tmp_path / "commits/.0.crc").unlink()
            (tmp_path / "commits/0").unlink()
        (tmp_path / ".metadata.crc").rename(tmp_path / ".metadata.5f1c.tmp.crc")
        assert run(one, tmp_path) == QUICK
    assert batches(tmp_path) == {"0", "1"}
    assert (tmp_path / "offsets/0").read_text() == planned
    assert {path.name for path in (tmp_path / "commits").glob("[0-9]*")} == {"0", "1"}


@pytest.mark.parametrize("keeps", ["aggregate", "duplicates", "join"])
def test_a_query_with_state_is_written_the_usual_way(stream: DataFrame, tmp_path: Path, keeps: str) -> None:
    timed = stream.withWatermark("timestamp", "1 minute")
    frames = {
        "aggregate": timed.groupBy("timestamp").count(),
        "duplicates": timed.dropDuplicates(["value", "timestamp"]),
        "join": timed.join(timed.selectExpr("value", "timestamp as then"), ["value"]),
    }
    assert not may_be_quick(frames[keeps], str(tmp_path))


def test_another_file_system_and_what_the_user_set_stay_as_they_are(stream: DataFrame, tmp_path: Path) -> None:
    assert not may_be_quick(stream, "s3a://bucket/checkpoint")
    spark = stream.sparkSession
    own = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
    spark.conf.set(SETTING, own)
    try:
        with quick_checkpoint(stream, str(tmp_path)):
            assert spark.conf.get(SETTING) == own
        assert spark.conf.get(SETTING) == own
    finally:
        spark.conf.unset(SETTING)
