"""A streaming query from files into a table: one file is one batch, so that batches are the same on every run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

FRAME = "id long, state string"


def put_batches(folder: Path, *batches: Iterable[int]) -> list[int]:
    """A file for each batch; returns all the ids."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, ids in enumerate(batches):
        path = folder / f"{number}.json"
        path.write_text("".join(json.dumps({"id": each, "state": f"batch {number}"}) + "\n" for each in ids))
        # The source takes files by age, and files of one instant have none.
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    return [each for ids in batches for each in ids]


def read_batches(spark: SparkSession, folder: Path, *, tasks: int = 2) -> DataFrame:
    frame = spark.readStream.schema(FRAME).option("maxFilesPerTrigger", 1).json(str(folder))
    return frame if tasks == 1 else frame.repartition(tasks)


def start(frame: DataFrame, format_name: str, options: dict[str, str], checkpoint: Path) -> StreamingQuery:
    writing = frame.writeStream.format(format_name).options(**options)
    return writing.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()


def newest_commit(checkpoint: Path) -> int:
    return max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit())


def forget_newest_commit(checkpoint: Path) -> int:
    """As if the driver had died before it noted the end of its last batch."""
    newest = newest_commit(checkpoint)
    (checkpoint / "commits" / str(newest)).unlink()
    (checkpoint / "commits" / f".{newest}.crc").unlink(missing_ok=True)
    return newest
