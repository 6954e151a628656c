"""From a plan to frames: sources are read, views computed in the order of who reads whom, expectations applied."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from moldau.spark.pipelines import sources
from moldau.spark.pipelines.plan import Expectation, PipelineError, Plan, Query, Shaping, Source, View, Violation

_PYTHON_FAILURE = re.compile(r"[\w.]*(Error|Exception|Refused|Failed)\b: ")
_JAVA_CLASS = re.compile(r"^:?\s*(?:[a-z]\w*\.)+[A-Z]\w*:\s*")

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
        for rule in rules:
            frame = self._expecting(frame, rule)
        frame.createOrReplaceTempView(one.name)
        self.by_name[one.name.lower()] = frame

    def _expecting(self, frame: DataFrame, rule: Expectation) -> DataFrame:
        """Whatever happens to the rows that break it, they are counted."""
        from pyspark.sql import functions as f

        holds = f.coalesce(f.expr(rule.condition), f.lit(False))
        if rule.otherwise is Violation.DEAD_LETTER:
            self.refused[rule] = frame.where(~holds)
        counted = frame.observe(f"{rule.on}.{rule.name}", f.count_if(~holds).alias("broken"))
        return _only(counted, holds, rule)


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


def spark_failures() -> tuple[type[Exception], ...]:
    """What Spark raises, what the bridge to its JVM raises, and what is left when the JVM has gone."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError, ConnectionError


def said_by(wrong: Exception) -> str:
    """Spark's reason in one line, without the plan and the stack that follow it."""
    text = str(wrong).strip().split("\nJVM stacktrace", 1)[0]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # A failure inside of Python comes as a stack trace whose last line is the reason.
    if "Traceback" in text:
        lines = [line for line in lines if _PYTHON_FAILURE.match(line)][-1:] or lines
    # One of the JVM begins with the call that failed, and only then says why.
    if lines and lines[0].startswith("An error occurred while calling"):
        lines = lines[1:]
    reason = lines[0] if lines else type(wrong).__name__
    return _JAVA_CLASS.sub("", reason).rstrip(";")
