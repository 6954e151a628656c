"""From a plan to frames: sources are read, views computed in the order of who reads whom, expectations applied."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from moldau.spark.formats.type_names import quoted_name
from moldau.spark.pipelines.plan import (
    Expectation,
    PipelineError,
    Plan,
    Query,
    Shaping,
    Sink,
    Source,
    View,
    Violation,
)
from moldau.spark.pipelines.running.frames import sources
from moldau.spark.pipelines.running.frames.sources import RECORD_COLUMNS
from moldau.spark.pipelines.running.reasons import said_by, spark_failures
from moldau.spark.pipelines.running.results.refused import BROKEN
from moldau.spark.pipelines.xml_values import MALFORMED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation, SparkSession


MALFORMED_COLUMN = RECORD_COLUMNS[MALFORMED]
RECORD_PLACE = (MALFORMED_COLUMN, *(RECORD_COLUMNS[name] for name in ("topic", "partition", "offset")))


@dataclass(slots=True)
class Frames:
    """Frames by the names of relations, in lower case.

    Where expectations keep dead letters, `judged` has all rows with the expectation that they broke, and `refused`
    those that broke one: the same rows as in `judged`, not counted a second time.
    """

    spark: SparkSession
    counts: bool = True  # Spark keeps what shall be counted until it was: frames that are only looked at count nothing
    by_name: dict[str, DataFrame] = field(default_factory=dict)
    judged: dict[str, DataFrame] = field(default_factory=dict)
    refused: dict[str, DataFrame] = field(default_factory=dict)
    observed: dict[str, Observation] = field(default_factory=dict)  # what is counted, outside of a streaming query

    def of(self, query: Query) -> DataFrame:
        if query.function is not None:
            result: DataFrame = query.function(*(self.by_name[name.lower()] for name in query.inputs))
            return result
        assert query.sql is not None, "a query is SQL or a function"
        return self.spark.sql(query.sql)

    def add(self, one: Source | View, frame: DataFrame, rules: list[Expectation]) -> None:
        from pyspark.sql import functions as f

        plain = shaped(frame, one.shaping)
        frame = _judged(plain, rules, self._counted)
        if any(rule.otherwise is Violation.DEAD_LETTER for rule in rules):
            self.judged[one.name.lower()] = frame
            self.refused[one.name.lower()] = _judged(plain, rules, _uncounted).where(f.col(BROKEN).isNotNull())
            frame = frame.where(f.col(BROKEN).isNull()).drop(BROKEN)
        self.put(one.name, frame)

    def put(self, name: str, frame: DataFrame) -> None:
        frame.createOrReplaceTempView(quoted_name(name))
        self.by_name[name.lower()] = frame

    def broken(self) -> dict[str, int]:
        """Rows that broke an expectation. What Spark left out of its plan has no figure, and must not be waited for."""
        counts: dict[str, int] = {}
        for name, observation in self.observed.items():
            try:
                observed = observation._jo
                is_there = observed is not None and bool(observed.future().isCompleted())
                counts[name] = int(observation.get.get("broken", 0)) if is_there else 0
            except spark_failures():
                counts[name] = 0
        return {name: count for name, count in counts.items() if count}

    def _counted(self, frame: DataFrame, breaks: Column, rule: Expectation) -> DataFrame:
        from pyspark.sql import Observation
        from pyspark.sql import functions as f

        if not self.counts:
            return frame
        name = f"{rule.on}.{rule.name}"
        broken = f.count_if(breaks).alias("broken")
        if frame.isStreaming:
            return frame.observe(name, broken)
        self.observed[name] = Observation()
        return frame.observe(self.observed[name], broken)


def _uncounted(frame: DataFrame, _breaks: Column, _rule: Expectation) -> DataFrame:
    return frame


def _judged(
    frame: DataFrame, rules: list[Expectation], counted: Callable[[DataFrame, Column, Expectation], DataFrame]
) -> DataFrame:
    """One rule after the other, each for the rows that broke none so far that keeps dead letters."""
    from pyspark.sql import functions as f

    keeps = any(rule.otherwise is Violation.DEAD_LETTER for rule in rules)
    if keeps:
        frame = frame.withColumn(BROKEN, f.lit(None).cast("string"))
    for rule in rules:
        holds = f.coalesce(f.expr(rule.condition), f.lit(False))  # what can't be told breaks the rule as well
        if keeps:
            holds = f.when(f.col(BROKEN).isNull(), holds).otherwise(True)
        frame = counted(frame, ~holds, rule)
        if rule.otherwise is Violation.DEAD_LETTER:
            frame = frame.withColumn(BROKEN, f.when(holds, f.col(BROKEN)).otherwise(rule.name))
        else:
            frame = _only(frame, holds, rule)
    return frame


def _only(frame: DataFrame, holds: Column, rule: Expectation) -> DataFrame:
    from pyspark.sql import functions as f

    if rule.otherwise is Violation.WARN:
        return frame
    if rule.otherwise is Violation.FAIL:
        row = f.to_json(f.struct(*(quoted_name(name) for name in frame.columns if _tells(name, frame))))
        said = f.concat(f.lit(f"expectation {rule.name} on {rule.on} ({rule.condition}) is broken by "), row)
        return frame.where(f.when(holds, f.lit(True)).otherwise(f.raise_error(said).cast("boolean")))
    return frame.where(holds)


def _tells(name: str, frame: DataFrame) -> bool:
    """Whether a person needs it to find the row: a record that can't be read has no columns to be known by."""
    return not name.startswith("_") or (MALFORMED_COLUMN in frame.columns and name in RECORD_PLACE)


def shaped(frame: DataFrame, shaping: Shaping) -> DataFrame:
    if shaping.watermark is not None:
        frame = frame.withWatermark(shaping.watermark.column, shaping.watermark.delay)
    if not shaping.deduplicate:
        return frame
    names = list(shaping.deduplicate)
    return frame.dropDuplicatesWithinWatermark(names) if frame.isStreaming else frame.dropDuplicates(names)


def frames_of(
    spark: SparkSession,
    plan: Plan,
    *,
    starting: Mapping[str, str] | None = None,
    given: Mapping[str, DataFrame] | None = None,
    counts: bool = True,
) -> Frames:
    """`given` are sources that are frames already. Raises PipelineError, with the place, for what Spark can't take."""
    frames, given = Frames(spark, counts), given or {}
    for name, function in plan.functions.items():
        spark.udf.register(name, function)
    for one in in_order(plan):
        try:
            if one.name.lower() in given:
                frame = given[one.name.lower()]
            elif isinstance(one, Source):
                frame = sources.read(spark, one, plan, starting=starting)
            else:
                frame = frames.of(one.query)
            frames.add(one, frame, plan.expectations_of(one.name))
        except spark_failures() as wrong:
            raise PipelineError(one.place, f"{one.name}: {said_by(wrong)}") from None
    return frames


def frames_after(spark: SparkSession, plan: Plan, sink: Sink, *, relation: str, frame: DataFrame) -> Frames:
    """What the sink reads, computed anew of a part of one relation's rows and of tables."""
    frames, reached = Frames(spark), plan.upstream(sink.query.inputs, stop=relation)
    frames.put(relation, frame)
    for one in in_order(plan):
        if one.name.lower() in reached - {relation.lower()}:
            made = sources.read(spark, one, plan) if isinstance(one, Source) else frames.of(one.query)
            frames.add(one, made, plan.expectations_of(one.name))
    return frames


def in_order(plan: Plan) -> Iterator[Source | View]:
    """Nothing before what it reads. The plan is checked: there are no cycles and no unknown names."""
    yield from plan.sources
    done = {source.name.lower() for source in plan.sources}
    waiting = list(plan.views)
    while waiting:
        ready = [view for view in waiting if all(name.lower() in done for name in view.query.inputs)]
        assert ready, "a checked plan has no cycles"
        yield from ready
        done.update(view.name.lower() for view in ready)
        waiting = [view for view in waiting if view.name.lower() not in done]
