"""How Spark writes the small files of a checkpoint, two in each batch.

On a local disk Spark's usual way starts twelve programs for each file (`readlink` and `chmod`), a tenth of a second in
a batch. Its other way starts two. That one renames a file and its checksum one after the other, which a crash may come
between: harmless for files that are written once, and those are all that a query without state has.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from moldau.spark.pipelines.running.joining.batches import is_stateless
from moldau.spark.storage import is_url

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SETTING = "spark.sql.streaming.checkpointFileManagerClass"
# No public API: with a Spark that has it elsewhere, the usual way is taken.
QUICK = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


@contextmanager
def quick_checkpoint(frame: DataFrame, checkpoint: str) -> Iterator[None]:
    """For the query of this frame, started within: it keeps what is set at that moment for all of its life."""
    settings = frame.sparkSession.conf
    if settings.get(SETTING, None) is not None or not may_be_quick(frame, checkpoint):
        yield
        return
    settings.set(SETTING, QUICK)
    try:
        yield
    finally:
        settings.unset(SETTING)


def may_be_quick(frame: DataFrame, checkpoint: str) -> bool:
    spark: Any = frame.sparkSession
    if is_url(checkpoint) or not hasattr(spark, "_sc"):
        return False
    # Spark takes a path for one of its default file system, wherever that is.
    if not str(spark._jsc.hadoopConfiguration().get("fs.defaultFS")).startswith("file:"):
        return False
    return bool(spark._jvm.org.apache.spark.util.Utils.classIsLoadable(QUICK)) and is_stateless(frame)
