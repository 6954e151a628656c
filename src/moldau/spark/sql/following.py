"""A question that goes on: rows as they come, until somebody interrupts."""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from moldau.spark.pipelines.running.reasons import said_by, spark_failures
from moldau.spark.sql.refusals import Refused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WAITING_MAX = 10_000  # rows that nobody has read yet; the query waits for its reader
LOOK_S = 0.2


def following(frame: DataFrame) -> Iterator[tuple[Any, ...]]:
    """Rows as they come, changed groups again and again; KeyboardInterrupt, once the query has ended."""
    arrived: queue.Queue[tuple[Any, ...]] = queue.Queue(maxsize=WAITING_MAX)
    over = threading.Event()

    def deliver(batch: DataFrame, _: int) -> None:
        for row in batch.toLocalIterator():
            _put(arrived, tuple(row), over)

    with _interrupts(over):
        query = _started(frame, deliver)
        try:
            while not over.is_set() and (query.isActive or not arrived.empty()):
                with suppress(queue.Empty):
                    yield arrived.get(timeout=LOOK_S)
            wrong = query.exception()
        finally:
            over.set()
            with suppress(*spark_failures()):
                query.stop()
    if wrong is not None:
        raise Refused(said_by(wrong))
    raise KeyboardInterrupt


def _put(arrived: queue.Queue[tuple[Any, ...]], row: tuple[Any, ...], over: threading.Event) -> None:
    while not over.is_set():
        with suppress(queue.Full):
            arrived.put(row, timeout=LOOK_S)
            return


@contextmanager
def _interrupts(over: threading.Event) -> Iterator[None]:
    """Spark's own answer to Ctrl-C, an exception wherever the program happens to be, leaves its bridge in a mess."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {one: signal.signal(one, lambda *_: over.set()) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _started(frame: DataFrame, deliver: Callable[[DataFrame, int], None]) -> Any:
    """Rows are appended where the query allows it; aggregates are shown whenever they change."""
    from pyspark.errors import AnalysisException

    if not hasattr(frame.sparkSession, "_sc"):
        raise Refused(
            "a Connect server can't send rows as they come: follow with a Spark of this machine, or of a cluster"
        )
    refusal = ""
    for mode in ("append", "update", "complete"):
        try:
            return frame.writeStream.foreachBatch(deliver).outputMode(mode).start()
        except AnalysisException as wrong:
            refusal = refusal or said_by(wrong)
    raise Refused(refusal)
