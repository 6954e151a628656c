"""From a plan to frames: sources are read, views computed in the order of who reads whom, expectations applied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from moldau.spark.pipelines.plan import Expectation, PipelineError, Plan, Query, Shaping, Source, View, Violation
from moldau.spark.pipelines.running import sources
from moldau.spark.pipelines.running.reasons import said_by, spark_failures

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@dataclass(slots=True)
class Frames:
    """Frames by the names of relations; what breaks an expectation and must be kept is beside them."""

    spark: SparkSession
    by_name: dict[str, DataFrame] = field(default_factory=dict)
    refused: dict[Expectation, DataFrame] = field(default_factory=dict)

    def of(self, query: Query) -> DataFrame:
        if query.function is not None:
            result: DataFrame = query.function(*(self.by_name[name.lower()] for name in query.inputs))
            return result
        assert query.sql is not None, "a query is SQL or a function"
        return self.spark.sql(query.sql)

    def add(self, one: Source | View, frame: DataFrame, rules: list[Expectation]) -> None:
        frame = shaped(frame, one.shaping)
        plain = frame  # the same rows; rules are counted once, in the query that the rows are for
        for rule in rules:
            holds = _holds(rule)
            if rule.otherwise is Violation.DEAD_LETTER:
                self.refused[rule] = plain.where(~holds)
            plain = _only(plain, holds, rule)
            frame = _only(_counted(frame, holds, rule), holds, rule)
        frame.createOrReplaceTempView("`" + one.name.replace("`", "``") + "`")
        self.by_name[one.name.lower()] = frame


def _holds(rule: Expectation) -> Column:
    """What can't be told breaks the rule as well."""
    from pyspark.sql import functions as f

    return f.coalesce(f.expr(rule.condition), f.lit(False))


def _counted(frame: DataFrame, holds: Column, rule: Expectation) -> DataFrame:
    from pyspark.sql import functions as f

    return frame.observe(f"{rule.on}.{rule.name}", f.count_if(~holds).alias("broken"))


def _only(frame: DataFrame, holds: Column, rule: Expectation) -> DataFrame:
    from pyspark.sql import functions as f

    if rule.otherwise is Violation.WARN:
        return frame
    if rule.otherwise is Violation.FAIL:
        row = f.to_json(f.struct(*(name for name in frame.columns if not name.startswith("_"))))
        said = f.concat(f.lit(f"expectation {rule.name} on {rule.on} ({rule.condition}) is broken by "), row)
        return frame.where(f.when(holds, f.lit(True)).otherwise(f.raise_error(said).cast("boolean")))
    return frame.where(holds)


def shaped(frame: DataFrame, shaping: Shaping) -> DataFrame:
    if shaping.watermark is not None:
        frame = frame.withWatermark(shaping.watermark.column, shaping.watermark.delay)
    if not shaping.deduplicate:
        return frame
    names = list(shaping.deduplicate)
    return frame.dropDuplicatesWithinWatermark(names) if frame.isStreaming else frame.dropDuplicates(names)


def frames_of(spark: SparkSession, plan: Plan, *, starting: Mapping[str, str] | None = None) -> Frames:
    """Raises PipelineError with the place of what Spark does not understand."""
    frames = Frames(spark)
    for name, function in plan.functions.items():
        spark.udf.register(name, function)
    for one in in_order(plan):
        try:
            frame = (
                sources.read(spark, one, plan, starting=starting) if isinstance(one, Source) else frames.of(one.query)
            )
            frames.add(one, frame, plan.expectations_of(one.name))
        except spark_failures() as wrong:
            raise PipelineError(one.place, f"{one.name}: {said_by(wrong)}") from None
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
