"""A query that joins streams with tables of topics, batch by batch: each with the tables that are pinned for it.

Streams are Spark's, with its checkpoint. What is computed of them is computed of each batch on its own, which is the
same as long as nothing is kept from batch to batch; a query that aggregates or joins streams is left to Spark alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from moldau.spark.formats.type_names import quoted_name
from moldau.spark.pipelines.plan import Connector, Kind, Plan, Query, Shaping, Source
from moldau.spark.pipelines.running.frames import sources
from moldau.spark.pipelines.running.frames.plan_frames import Frames, frames_of
from moldau.spark.pipelines.running.frames.sources import TOMBSTONE
from moldau.spark.pipelines.running.joining.keys import KeyColumns, elements_of, key_columns, lookup_for, uses_of
from moldau.spark.pipelines.running.joining.pinned_tables import PinnedTable
from moldau.spark.pipelines.running.joining.states import TableState
from moldau.spark.pipelines.running.results.kept import KeptBatch, fingerprint, is_repeatable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STREAM = "_stream"
FOLDER, RESULTS = "joined", "rows"
# Which rows a task gets is part of what was written: it must not depend on how many cores there are at the moment.
SHARED_BY_SIZE = ("spark.sql.adaptive.coalescePartitions.parallelismFirst", "false")
# What Spark computes of each batch on its own.
STATELESS = (
    "CTERelationDef",
    "CTERelationRef",
    "CollectMetrics",
    "EventTimeWatermark",
    "Filter",
    "Generate",
    "Join",
    "LateralJoin",
    "MapInArrow",
    "MapInPandas",
    "Project",
    "ResolvedHint",
    "StreamingRelationV2",
    "SubqueryAlias",
    "Union",
    "View",
    "WithCTE",
)


@dataclass(frozen=True, slots=True)
class TableJoin:
    """What one sink gets of streams and tables."""

    plan: Plan  # of what the sink reads, and no more
    streams: tuple[str, ...]
    tables: tuple[Source, ...]  # of topics; those of elsewhere can't be pinned
    frame: DataFrame  # all streams as one, for a query has one batch at a time
    query: Query

    @property
    def is_sql(self) -> bool:
        """A function of Python may make another query of each batch."""
        return all(query.sql is not None for query in (*(view.query for view in self.plan.views), self.query))

    def delivery(
        self, checkpoint: str, deliver: Callable[[DataFrame, int], None], broken: Counter[str]
    ) -> Callable[[DataFrame, int], None]:
        """`broken` counts the rows that break expectations."""
        states = [TableState(table, self.plan, checkpoint) for table in self.tables]
        return JoinedBatches(self, states, checkpoint, deliver, broken)


def table_join(frames: Frames, plan: Plan, query: Query) -> TableJoin | None:
    """None for a query that joins no table with streams, and for one that keeps state in Spark."""
    if not hasattr(frames.spark, "_sc"):
        return None  # a Connect server has no files and no plans to look at
    read = plan.read_by(query)
    streams = tuple(one.name.lower() for one in read.sources if one.kind is Kind.STREAM)
    topics = (Connector.TOPIC, Connector.PATTERN)
    tables = tuple(one for one in read.sources if one.kind is Kind.TABLE)
    if not streams or not tables or not is_stateless(frames.of(query), set(streams)):
        return None
    tables = tuple(one for one in tables if one.endpoint.connector in topics)
    return TableJoin(read, streams, tables, _together([frames.by_name[name] for name in streams]), query)


def is_stateless(frame: DataFrame, streams: Set[str] = frozenset()) -> bool:
    """Whether Spark keeps nothing from batch to batch, not counting what `streams`, known by name, keep below."""
    if not frame.isStreaming:
        return False
    return all(
        node.nodeName() in STATELESS
        and (node.nodeName() != "Join" or sum(map(_streams, elements_of(node.children()))) == 1)
        for node in _streaming_nodes(frame._jdf.queryExecution().analyzed(), streams)
    )


def _streaming_nodes(plan: Any, streams: Set[str]) -> Iterator[Any]:
    """Down to the streams' own frames, in which Spark may keep what it likes."""
    if not plan.isStreaming() or (
        plan.nodeName() == "View" and str(plan.desc().identifier().table()).lower() in streams
    ):
        return
    yield plan
    for child in elements_of(plan.children()):
        yield from _streaming_nodes(child, streams)


def _streams(plan: Any) -> bool:
    return bool(plan.isStreaming())


def _together(frames: list[DataFrame]) -> DataFrame:
    """One frame with a column for each stream's rows; a single stream is itself."""
    from pyspark.sql import functions as f

    if len(frames) == 1:
        return frames[0]
    packed = [
        frame.select(
            f.lit(number).alias(STREAM),
            *(
                (
                    f.struct(*map(quoted_name, frame.columns)) if place == number else f.lit(None).cast(other.schema)
                ).alias(f"_{place}")
                for place, other in enumerate(frames)
            ),
        )
        for number, frame in enumerate(frames)
    ]
    together = packed[0]
    for each in packed[1:]:
        together = together.union(each)
    return together


@dataclass(slots=True)
class JoinedBatches:
    """For foreachBatch."""

    join: TableJoin
    states: list[TableState]
    checkpoint: str
    deliver: Callable[[DataFrame, int], None]
    broken: Counter[str]
    others: dict[str, DataFrame] = field(default_factory=dict)  # tables of elsewhere, which are read anew by themselves
    asked: dict[str, KeyColumns] = field(default_factory=dict)  # of tables, as the plan of a batch before showed it

    def __call__(self, batch: DataFrame, number: int) -> None:
        batch.sparkSession.conf.set(*SHARED_BY_SIZE)
        tables = {state.source.name.lower(): state.pinned(batch.sparkSession, number) for state in self.states}
        batch.persist()  # it is looked at for keys, and then joined
        try:
            frames, result = self._joined(batch, tables)
            self.deliver(self._kept(result, number), number)
        finally:
            batch.unpersist()
        self.broken.update(frames.broken())

    def _kept(self, result: DataFrame, number: int) -> DataFrame:
        """The same rows each time that the batch runs: by its pins, and where those do not do it, by keeping them."""
        if not self.others and is_repeatable(result):
            return result
        plan = fingerprint(self.join.plan, self.join.query)
        kept = KeptBatch(result.sparkSession, f"{self.checkpoint}/{FOLDER}", number, plan)
        kept.forget_previous()
        return kept.get(RESULTS, result) if kept.has(RESULTS, result) else kept.put(RESULTS, result)

    def _joined(self, batch: DataFrame, tables: Mapping[str, PinnedTable]) -> tuple[Frames, DataFrame]:
        """Tables are joined one after the other, for one may say which rows of the next are asked for."""
        spark = batch.sparkSession
        known = {**self._of_streams(batch), **self._of_others(spark)}
        known |= {name: tables[name].rows(spark, asked.lookup(batch)) for name, asked in self.asked.items()}
        waiting = {name: table for name, table in tables.items() if name not in known}
        has_few_rows = bool(self.asked)
        while waiting:
            snapshots = {name: table.snapshot.drop(TOMBSTONE) for name, table in waiting.items()}
            result = self._computed(spark, {**known, **snapshots}, counts=False)[1]
            by_url = {table.snapshot_url: name for name, table in waiting.items()}
            keys = {url: waiting[name].source.keys for url, name in by_url.items()}
            uses = {by_url[url]: found for url, found in uses_of(result, keys).items()}
            for name in uses or tuple(waiting):
                known[name] = waiting.pop(name).rows(spark, lookup_for(uses[name]) if name in uses else None)
            # Spark folds what the clock says into a plan, and few rows of a table too: that is this batch's plan alone.
            if not has_few_rows and self.join.is_sql and is_repeatable(result):
                self.asked = {name: told for name, found in uses.items() if (told := key_columns(found, batch))}
            has_few_rows = True
        return self._computed(spark, known, counts=True)

    def _computed(
        self, spark: SparkSession, given: Mapping[str, DataFrame], *, counts: bool
    ) -> tuple[Frames, DataFrame]:
        frames = frames_of(spark, self._plan(), given=given, counts=counts)
        return frames, frames.of(self.join.query)

    def _plan(self) -> Plan:
        """Streams come with their shape and rules applied; tables do not."""
        plan, streams = self.join.plan, self.join.streams
        shaped = (replace(one, shaping=Shaping()) if one.name.lower() in streams else one for one in plan.sources)
        rules = (rule for rule in plan.expectations if rule.on.lower() not in streams)
        return replace(plan, sources=tuple(shaped), expectations=tuple(rules))

    def _of_others(self, spark: SparkSession) -> dict[str, DataFrame]:
        pinned = {*self.join.streams, *(table.name.lower() for table in self.join.tables)}
        for one in self.join.plan.sources:
            if one.name.lower() not in pinned and one.name.lower() not in self.others:
                self.others[one.name.lower()] = sources.read(spark, one, self.join.plan)
        return self.others

    def _of_streams(self, batch: DataFrame) -> dict[str, DataFrame]:
        names = self.join.streams
        if len(names) == 1:
            return {names[0]: batch}
        return {name: batch.where(f"{STREAM} = {number}").select(f"_{number}.*") for number, name in enumerate(names)}
