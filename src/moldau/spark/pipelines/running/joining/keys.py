"""Which rows of a table a batch asks for, by Spark's own plan of the joins.

Spark joins a table by reading all of it. Where its plan says that the table is joined by its key, the other side of the
join says which keys, and the rows of no others can become part of a result. Nothing is rewritten: the table is read
with fewer rows. What is not recognised here is read whole, which takes longer and is as right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from moldau.spark.formats.type_names import quoted_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# As literals they are compared with what Parquet knows of its pages; beyond that Spark joins with the keys' frame.
LITERALS_MAX = 100
# Types whose values are the same in Python and in a literal, and equal in no more than one way. Dates are not among
# them: Python has none beyond the year 9999.
KEY_TYPES = ("string", "tinyint", "smallint", "int", "bigint", "boolean")
# Joins in which a row of that side without a partner adds nothing to the result.
OUTER_SIDE = {
    "right": ("INNER", "LEFT OUTER", "LEFT SEMI", "LEFT ANTI"),
    "left": ("INNER", "RIGHT OUTER"),
}
OTHER = {"left": "right", "right": "left"}
ROW_BY_ROW = ("Project", "Filter")


@dataclass(frozen=True, slots=True)
class Lookup:
    """Keys that are asked for; `values` has them all unless there are too many, `frame` always."""

    columns: tuple[str, ...]
    frame: DataFrame
    values: Sequence[Sequence[Any]] | None

    def rows_of(self, table: DataFrame) -> DataFrame:
        from pyspark.sql import functions as f

        if self.values is None:
            return table.join(self.frame, list(self.columns), "left_semi").select(*table.columns)
        asked = zip(self.columns, zip(*self.values, strict=True), strict=True) if self.values else ()
        conditions = [f.col(column).isin(list(set(values))) for column, values in asked]
        return table.where(reduce(lambda one, other: one & other, conditions) if conditions else f.lit(False))

    def found_in(self, table: pa.Table) -> pa.Table:
        """The same of rows that are here; there must be values."""
        assert self.values is not None, "too many keys are looked for by Spark"
        if not self.values:
            return table.slice(0, 0)
        asked = zip(self.columns, zip(*self.values, strict=True), strict=True)
        masks = [pc.is_in(table[column], pa.array(set(values), table[column].type)) for column, values in asked]
        return table.filter(reduce(pc.and_, masks))


def lookup_of(columns: tuple[str, ...], frame: DataFrame) -> Lookup:
    """A small batch is taken as it is; only of a larger one it is worth a shuffle to find out how many keys it has."""
    for keys in (frame, frame.distinct()):
        found = keys.limit(LITERALS_MAX + 1).collect()
        if len(found) <= LITERALS_MAX:
            return Lookup(columns, frame, sorted({tuple(row) for row in found if None not in row}))
    return Lookup(columns, frame, None)


@dataclass(frozen=True, slots=True)
class Use:
    """One join of a table by columns of its key; `keys` are the other side's, with those columns' names.

    `asked` are the ids that Spark gave the other side's columns; None for what is computed.
    """

    columns: tuple[str, ...]
    keys: DataFrame
    asked: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """Columns of a batch that say which keys of a table are asked for.

    What one plan shows is true of the query, whatever its batches hold: the next batch needs no plan to be looked at.
    Rows that the query leaves out before the join are asked for as well, which does no harm.
    """

    columns: tuple[str, ...]
    asked: tuple[tuple[str, ...], ...]

    def lookup(self, batch: DataFrame) -> Lookup:
        from pyspark.sql import functions as f

        frames = (
            batch.select(
                *(f.col(quoted_name(name)).alias(column) for name, column in zip(names, self.columns, strict=True))
            )
            for names in self.asked
        )
        return lookup_of(self.columns, reduce(lambda one, other: one.union(other), frames))


def key_columns(uses: Sequence[Use], batch: DataFrame) -> KeyColumns | None:
    """None unless every key is a column of the batch as it is."""
    plan = batch._jdf.queryExecution().analyzed()
    names = {str(column.exprId()): str(column.name()) for column in elements_of(plan.output())}
    asked = [tuple(names[key] for key in use.asked if key in names) for use in uses]
    columns = uses[0].columns
    if len(set(names.values())) < len(names) or any(use.columns != columns for use in uses):
        return None
    return KeyColumns(columns, tuple(asked)) if all(len(each) == len(columns) for each in asked) else None


def uses_of(frame: DataFrame, tables: Mapping[str, Sequence[str]]) -> dict[str, list[Use]]:
    """How each table, known by the place of its files and with the columns of its key, is used in a frame.

    A table is left out where one of its uses is none of these joins, or asks for keys that another table has to say.
    """
    plan = frame._jdf.queryExecution().optimizedPlan()
    hidden = [leaf for subquery in elements_of(plan.subqueriesAll()) for leaf in _leaves(subquery, tables)]
    there = _leaves(plan, tables)
    uses: dict[str, list[Use]] = {url: [] for url in there if url not in hidden}
    for node in _nodes(plan):
        if node.nodeName() == "Join":
            for side in OUTER_SIDE:
                found = _use(frame, node, side, tables)
                if found is not None and found[0] in uses:
                    uses[found[0]].append(found[1])
    return {url: found for url, found in uses.items() if len(found) == there.count(url)}


def lookup_for(uses: Sequence[Use]) -> Lookup | None:
    """None where uses are by different columns."""
    columns = uses[0].columns
    if any(use.columns != columns for use in uses):
        return None
    return lookup_of(columns, reduce(lambda one, other: one.union(other), (use.keys for use in uses)))


def _use(frame: DataFrame, join: Any, side: str, tables: Mapping[str, Sequence[str]]) -> tuple[str, Use] | None:
    from pyspark.sql import DataFrame as Frame

    url = _table_below(getattr(join, side)(), tables)
    if url is None or str(join.joinType().sql()) not in OUTER_SIDE[side]:
        return None
    other = getattr(join, OTHER[side])()
    jvm: Any = frame.sparkSession._jvm
    found = jvm.org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys.unapply(join)
    if not found.isDefined() or _leaves(other, tables):
        return None
    sides = {"left": elements_of(found.get()._2()), "right": elements_of(found.get()._3())}
    pairs = [
        (str(own.name()), asked)
        for own, asked in zip(sides[side], sides[OTHER[side]], strict=True)
        if _is_key_column(own, getattr(join, side)(), tables[url])
    ]
    if not pairs:
        return None
    pairs.sort(key=lambda pair: pair[0])
    session = frame.sparkSession
    rows = Frame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, other), session)
    keys = rows.select(*(_column(jvm, asked, name) for name, asked in pairs))
    return url, Use(tuple(name for name, _ in pairs), keys, tuple(_id_of(asked) for _, asked in pairs))


def _id_of(expression: Any) -> str | None:
    return str(expression.exprId()) if expression.nodeName() == "AttributeReference" else None


def _column(jvm: Any, expression: Any, name: str) -> Any:
    from pyspark.sql import Column

    return Column(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression)).alias(name)


def _is_key_column(expression: Any, plan: Any, keys: Sequence[str]) -> bool:
    """Whether it is a column of the table's own files, not one that was computed of them on the way."""
    if expression.nodeName() != "AttributeReference" or str(expression.dataType().simpleString()) not in KEY_TYPES:
        return False
    (leaf,) = (node for node in _nodes(plan) if node.nodeName() == "LogicalRelation")
    own = {str(column.exprId()) for column in elements_of(leaf.output())}
    return str(expression.exprId()) in own and str(expression.name()) in keys


def _table_below(plan: Any, tables: Mapping[str, Sequence[str]]) -> str | None:
    """The table whose rows this is about, one by one."""
    while plan.nodeName() in ROW_BY_ROW:
        plan = plan.children().apply(0)
    return _url_of(plan, tables)


def _leaves(plan: Any, tables: Mapping[str, Sequence[str]]) -> list[str]:
    return [url for node in _nodes(plan) if (url := _url_of(node, tables)) is not None]


def _url_of(node: Any, tables: Mapping[str, Sequence[str]]) -> str | None:
    if node.nodeName() != "LogicalRelation" or node.relation().getClass().getSimpleName() != "HadoopFsRelation":
        return None
    paths = [str(path.toString()) for path in elements_of(node.relation().location().rootPaths())]
    return next((url for url in tables if [_plain(url)] == [_plain(path) for path in paths]), None)


def _plain(url: str) -> str:
    """Java writes one slash where there is no host, Python three."""
    return url.replace("file:///", "file:/")


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for child in elements_of(plan.children()):
        yield from _nodes(child)


def elements_of(seq: Any) -> list[Any]:
    """Of a sequence of Scala's."""
    return [seq.apply(index) for index in range(seq.size())]
