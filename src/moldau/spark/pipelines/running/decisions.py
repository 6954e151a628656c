"""One batch decides which rows are results and which are dead letters, and its decision is kept.

The rows of a batch are computed once, with the expectation that each of them broke, and written beside the checkpoint
before anything else is. Results and letters are both made of what stands there. If the batch runs again, after a crash
and with a table that changed, the decision that stands there is used: each row is in one place, and in one only.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moldau.spark.option_values import OptionError
from moldau.spark.pipelines.plan import Connector, Endpoint, Kind, PipelineError, Plan, Sink, letters_topic
from moldau.spark.pipelines.running.frames import Frames, frames_after
from moldau.spark.pipelines.running.refused import BROKEN, letters_of, refused_rows
from moldau.spark.pipelines.running.sources import topic_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROW, REFUSED = "row", "refused"
# What keeps rows from batch to batch, or looks at several rows at once: only Spark's own streaming does that right.
STATEFUL = ("Aggregate", "Distinct", "Deduplicate", "Group", "State", "Limit", "Window", "Sort")
# One task for each file of a decision, whatever machine reads it again: a task's rows are part of what was written.
FILE_FOR_FILE = {
    "spark.sql.files.maxPartitionBytes": str(1 << 40),
    "spark.sql.files.openCostInBytes": str(1 << 40),
    "spark.sql.files.minPartitionNum": "1",
}
Deliver = Callable[["DataFrame", int], None]


@dataclass(frozen=True)
class Decision:
    """`frame` is what runs; `relation` is where the results are cut off it, None where `frame` has both beside it."""

    frame: DataFrame
    relation: str | None
    relations: tuple[str, ...]

    def topics(self, plan: Plan) -> list[str]:
        return [letters_topic(name, plan) for name in self.relations]


def decision_of(sink: Sink, result: DataFrame, frames: Frames, plan: Plan) -> Decision | None:
    """How the sink's batches decide; None where nothing that it reads has dead letters. Raises PipelineError."""
    reached = plan.upstream(sink.query.inputs)
    judged = [one.name for one in plan.relations() if one.name.lower() in reached and plan.has_dead_letters(one.name)]
    if not judged:
        return None
    if len(judged) == 1 and _is_row_by_row(sink, result, frames.judged[judged[0].lower()], judged[0], plan):
        return Decision(frames.judged[judged[0].lower()], judged[0], tuple(judged))
    for name in judged:
        if plan.tables_of(name):
            raise PipelineError(
                sink.place,
                f"sink {sink.name} aggregates, limits or joins streams after {name}, which has dead letters and reads "
                f"table {plan.tables_of(name)[0]}: its rows could be judged twice. Write {name} into a topic first "
                f"(CREATE STREAM … AS SELECT * FROM {name}), and read that",
            )
    return Decision(_side_by_side(result, frames, judged), None, tuple(judged))


def _side_by_side(result: DataFrame, frames: Frames, judged: list[str]) -> DataFrame:
    """Results and refused rows in one frame. Both come of the same records: no table can change between them."""
    from pyspark.sql import functions as f

    refused = [refused_rows(frames.refused[name.lower()], name) for name in judged]
    empty = refused[0].schema
    both = result.select(f.struct("*").alias(ROW), f.lit(None).cast(empty).alias(REFUSED))
    for one in refused:
        both = both.unionAll(
            one.select(f.lit(None).cast(result.schema).alias(ROW), f.struct("*").alias(REFUSED)),
        )
    return both


def _is_row_by_row(sink: Sink, result: DataFrame, judged: DataFrame, relation: str, plan: Plan) -> bool:
    """Whether what follows the relation can be computed of each of its batches alone."""
    around = plan.upstream(sink.query.inputs, stop=relation)
    if any(one.kind is Kind.STREAM and one.name.lower() in around - {relation.lower()} for one in plan.sources):
        return False
    if not hasattr(result, "_jdf"):
        return False  # a Connect server does not say what is in a plan
    return _streaming_work(result) == _streaming_work(judged)


def _streaming_work(frame: DataFrame) -> Counter[str]:
    """Streaming operators that look beyond a row, and the number of streams, of a frame's plan."""
    found: Counter[str] = Counter()
    ahead: list[Any] = [frame._jdf.queryExecution().analyzed()]
    while ahead:
        node = ahead.pop()
        if not node.isStreaming():
            continue
        children = node.children()
        name = str(node.nodeName())
        if children.size() == 0:
            found["stream"] += 1
        elif any(word in name for word in STATEFUL):
            found[name] += 1
        ahead += [children.apply(number) for number in range(children.size())]
    return found


@dataclass(frozen=True)
class DecidedBatches:
    """What a query does with each of its batches; picklable, for a Connect server runs it elsewhere."""

    plan: Plan
    sink: Sink
    relation: str | None
    query_name: str
    checkpoint: str
    deliver: Deliver
    deliver_letters: Deliver
    broken: Counter[str] = field(default_factory=Counter)  # rows, by expectations after the relation

    def __call__(self, batch: DataFrame, number: int) -> None:
        decided = self._decided(batch, number)
        if self.relation is None:
            refused = decided.where(f"{REFUSED} is not null").select(f"{REFUSED}.*")
        else:
            refused = refused_rows(decided.where(f"{BROKEN} is not null"), self.relation)
        letters = letters_of(refused, self.plan, query=self.query_name)
        if letters is not None:
            # One task: which rows are whose must be the same if the batch runs again, and letters are few.
            self.deliver_letters(letters.repartition(1), number)
        if self.relation is None:
            self.deliver(decided.where(f"{ROW} is not null").select(f"{ROW}.*"), number)
        else:
            self._deliver_rest(decided.where(f"{BROKEN} is null").drop(BROKEN), number)

    def _deliver_rest(self, good: DataFrame, number: int) -> None:
        assert self.relation is not None, "it is known where results are cut off"
        frames = frames_after(good.sparkSession, self.plan, self.sink, relation=self.relation, frame=good)
        self.deliver(frames.of(self.sink.query), number)
        for name, observation in frames.observed.items():
            if count := int(observation.get["broken"]):
                self.broken[name] += count

    def _decided(self, batch: DataFrame, number: int) -> DataFrame:
        session, folder = batch.sparkSession, f"{self.checkpoint}/decided"
        path, numbered = f"{folder}/{number}", batch.toDF(*map(str, range(len(batch.columns))))  # names may come twice
        for key, value in FILE_FOR_FILE.items():
            session.conf.set(key, value)
        decided = session.read.schema(numbered.schema)
        if _exists(session, f"{path}/_SUCCESS"):
            # The decision stands; but a query with state has to compute its batch, or the next finds no state.
            numbered.write.format("noop").mode("overwrite").save()
        else:
            is_local = str(session.conf.get("spark.master", "")).startswith("local[")
            count = None if is_local else lambda: decided.parquet(path).count()
            write_whole(numbered, path, count)
        _remove(session, f"{folder}/{number - 1}")
        return decided.parquet(path).toDF(*batch.columns)


def write_whole(frame: DataFrame, path: str, count: Callable[[], int] | None) -> None:
    """Executors that each write to a disk of their own leave nothing that others find, and Spark says nothing.

    `count` looks what is there, where executors may be elsewhere.
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    if count is None:
        frame.write.mode("overwrite").parquet(path)
        return
    observed = Observation()
    frame.observe(observed, f.count(f.lit(1)).alias("rows")).write.mode("overwrite").parquet(path)
    if (found := count()) != (written := observed.get["rows"]):
        _remove(frame.sparkSession, path)
        raise OptionError(
            f"{written} rows were written to {path}, and {found} are there: dead letters need a checkpoint that the "
            "driver and all executors share; set it with: set checkpoint = 'PLACE'"
        )


def letter_options(plan: Plan) -> dict[str, str]:
    """Letters are in the pipeline's own cluster, wherever the records came from."""
    return topic_options(Endpoint(Connector.TOPIC, ""), plan)


def _exists(session: SparkSession, path: str) -> bool:
    if not hasattr(session, "_jvm"):
        return Path(path).exists()
    files, place = _file_system(session, path)
    return bool(files.exists(place))


def _remove(session: SparkSession, path: str) -> None:
    if not hasattr(session, "_jvm"):
        shutil.rmtree(path, ignore_errors=True)
        return
    files, place = _file_system(session, path)
    files.delete(place, True)


def _file_system(session: Any, path: str) -> tuple[Any, Any]:
    """Whatever Spark takes for a checkpoint: a folder here, or a store elsewhere."""
    place = session._jvm.org.apache.hadoop.fs.Path(path)
    return place.getFileSystem(session._jsparkSession.sessionState().newHadoopConf()), place
