"""One batch decides which rows are results and which are dead letters, and its decision is kept.

The rows of a batch are computed once, with the expectation that each of them broke, and written beside the checkpoint
before anything else is. Results and letters are both made of what stands there. If the batch runs again, after a crash
and with a table that changed, the decision that stands there is used: each row is in one place, and in one only.

Letters are kept there too, for the records that they are made of may be gone by then, and so are results that a table
or a clock has a part in: a batch that runs again writes what it wrote before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from moldau.spark.pipelines.plan import Connector, Endpoint, Kind, PipelineError, Plan, Query, Sink, letters_topic
from moldau.spark.pipelines.running.frames.plan_frames import Frames, frames_after
from moldau.spark.pipelines.running.frames.sources import topic_options
from moldau.spark.pipelines.running.results.kept import KeptBatch, fingerprint, is_repeatable
from moldau.spark.pipelines.running.results.refused import BROKEN, empty_letters, letters_of, refused_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROW, REFUSED = "row", "refused"
# What keeps rows from batch to batch, or looks at several rows at once: only Spark's own streaming does that right.
STATEFUL = ("Aggregate", "Distinct", "Deduplicate", "Group", "State", "Limit", "Window", "Sort")
FOLDER = "decided"
ROWS, LETTERS, RESULTS = "rows", "letters", "results"
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
        plan = fingerprint(self.plan, self.sink.query)
        kept = KeptBatch(batch.sparkSession, f"{self.checkpoint}/{FOLDER}", number, plan)
        decided = self._decided(batch, kept)
        kept.forget_previous()
        letters = self._letters(decided, kept)
        if letters is not None:
            # One task: which rows are whose must be the same if the batch runs again, and letters are few.
            self.deliver_letters(letters.repartition(1), number)
        if self.relation is None:
            self.deliver(decided.where(f"{ROW} is not null").select(f"{ROW}.*"), number)
        else:
            self._deliver_rest(decided.where(f"{BROKEN} is null").drop(BROKEN), kept)

    def _decided(self, batch: DataFrame, kept: KeptBatch) -> DataFrame:
        if not kept.has(ROWS, batch):
            return kept.put(ROWS, batch)
        # The decision stands; but a query with state has to compute its batch, or the next finds no state.
        batch.toDF(*map(str, range(len(batch.columns)))).write.format("noop").mode("overwrite").save()
        return kept.get(ROWS, batch)

    def _letters(self, decided: DataFrame, kept: KeptBatch) -> DataFrame | None:
        if self.relation is None:
            refused = decided.where(f"{REFUSED} is not null").select(f"{REFUSED}.*")
        else:
            refused = refused_rows(decided.where(f"{BROKEN} is not null"), self.relation)
        if kept.has(LETTERS, like := empty_letters(kept.session)):
            return kept.get(LETTERS, like)
        # A topic of that name may be in another cluster too, where some other stream of the plan reads it.
        read = self.plan.read_by(self.sink.query if self.relation is None else Query((self.relation,)))
        letters = letters_of(refused, read, query=self.query_name)
        return None if letters is None else kept.put(LETTERS, letters)

    def _deliver_rest(self, good: DataFrame, kept: KeptBatch) -> None:
        assert self.relation is not None, "it is known where results are cut off"
        frames = frames_after(good.sparkSession, self.plan, self.sink, relation=self.relation, frame=good)
        result = frames.of(self.sink.query)
        if kept.has(RESULTS, result):
            result = kept.get(RESULTS, result)
        elif self._reads_tables() or not is_repeatable(result):
            result = kept.put(RESULTS, result)
        self.deliver(result, kept.number)
        self.broken.update(frames.broken())

    def _reads_tables(self) -> bool:
        """Whether what follows the relation reads anything beside it."""
        around = self.plan.upstream(self.sink.query.inputs, stop=self.relation)
        return any(one.kind is Kind.TABLE and one.name.lower() in around for one in self.plan.sources)


def letter_options(plan: Plan) -> dict[str, str]:
    """Letters are in the pipeline's own cluster, wherever the records came from."""
    return topic_options(Endpoint(Connector.TOPIC, ""), plan)
