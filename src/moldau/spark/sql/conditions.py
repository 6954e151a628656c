"""Which conditions of a question narrow what has to be read of a topic: on `_partition`, `_offset` and `_timestamp`.

Spark would hand conditions to a data source, but keeps what the source answered with the frame: whoever uses the frame
a second time, with other conditions or none, gets the rows of the first (decision 26). So they are found here, in the
text. A condition is taken only where it can be no mistake: the topic is read once in the whole statement, by a SELECT
that reads nothing else, and the condition is one of those that all have to hold. Everything else is left to Spark,
which checks the conditions that are taken here once more anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from moldau.spark.pipelines.language.queries import WINDOW
from moldau.spark.reading.narrowing import Narrowing

if TYPE_CHECKING:
    from sqlglot import exp

COLUMNS = ("_partition", "_offset", "_timestamp")
OFFSET_MAX = 2**63 - 1


def narrowing_of(text: str, topic: str, milliseconds: Callable[[str], int | None]) -> Narrowing:
    """`milliseconds` computes a constant expression of SQL as a time, or says None."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        parsed = sqlglot.parse_one(WINDOW.sub("time_window(", text), read="spark")
    except SqlglotError:
        return Narrowing()  # for Spark to judge
    # Spark takes ORDERS for orders.
    tables = [table for table in parsed.find_all(exp.Table) if table.name.lower() == topic.lower()]
    names = {one.alias_or_name.lower() for one in parsed.find_all(exp.CTE)}
    if len(tables) != 1 or topic.lower() in names or not _is_alone(tables[0]):
        return Narrowing()
    select = tables[0].find_ancestor(exp.Select)
    where = select.args.get("where") if select is not None else None
    found = Narrowing()
    if where is not None:
        for condition in where.this.flatten() if isinstance(where.this, exp.And) else [where.this]:
            for one in _narrowings(condition.unnest(), tables[0].alias_or_name, milliseconds):
                found = found.and_also(one)
    return found


def _is_alone(table: exp.Table) -> bool:
    """What its SELECT reads is this table, without samples, joins or views beside it."""
    from sqlglot import exp

    select = table.find_ancestor(exp.Select)
    source = table.parent
    beside = ("joins", "laterals", "pivots", "sample")
    return (
        select is not None
        and isinstance(source, exp.From)
        and source.parent is select
        and not any(select.args.get(name) for name in beside)
        and not any(table.args.get(name) for name in (*beside, "when", "version"))
    )


def _narrowings(condition: Any, table: str, milliseconds: Callable[[str], int | None]) -> Iterator[Narrowing]:
    from sqlglot import exp

    if isinstance(condition, exp.Between):
        low = exp.GTE(this=condition.this, expression=condition.args["low"])
        high = exp.LTE(this=condition.this, expression=condition.args["high"])
        for one in (low, high):
            yield from _narrowings(one, table, milliseconds)
        return
    if isinstance(condition, exp.In):
        yield from _one_of(condition, table)
        return
    compared = _compared(condition)
    if compared is None:
        return
    column, sign, value = compared
    if not _is_of(column, table):
        return
    if column.name.lower() == "_timestamp":
        yield from _since(sign, value, milliseconds)
    else:
        number = _number(value)
        if number is not None:
            yield from _numbered(column.name.lower(), sign, number)


def _compared(condition: Any) -> tuple[exp.Column, str, exp.Expression] | None:
    """Column, sign and value, whichever side the column is on."""
    from sqlglot import exp

    signs = {exp.EQ: "=", exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}
    turned = {"=": "=", ">": "<", ">=": "<=", "<": ">", "<=": ">="}
    sign = signs.get(type(condition))
    if sign is None:
        return None
    left, right = condition.this.unnest(), condition.expression.unnest()
    if isinstance(left, exp.Column):
        return left, sign, right
    return (right, turned[sign], left) if isinstance(right, exp.Column) else None


def _is_of(column: exp.Column, table: str) -> bool:
    return column.name.lower() in COLUMNS and column.table.lower() in ("", table.lower())


def _since(sign: str, value: exp.Expression, milliseconds: Callable[[str], int | None]) -> Iterator[Narrowing]:
    """Only from below: a record that is older than one before it may stand anywhere."""
    if sign in ("=", ">", ">=") and _is_settled(value):
        found = milliseconds(value.sql(dialect="spark"))
        if found is not None:
            yield Narrowing(since_ms=found)


def _is_settled(value: exp.Expression) -> bool:
    """Made of constants and of now, which only grows: a bound that is computed a moment before is too low, not high."""
    from sqlglot import exp

    allowed = (
        exp.Literal, exp.Cast, exp.DataType, exp.Interval, exp.Var, exp.Paren, exp.CurrentTimestamp, exp.CurrentDate,
        exp.IntervalSpan,
    )  # fmt: skip
    if isinstance(value, exp.Add | exp.Sub):
        right = value.expression.unnest()
        return _is_settled(value.this.unnest()) and isinstance(right, exp.Interval) and _is_settled(right)
    if isinstance(value, exp.Anonymous) and value.name.lower() == "now" and not value.expressions:
        return True
    return all(isinstance(node, allowed) for node in value.walk())


def _number(value: exp.Expression) -> int | None:
    from sqlglot import exp

    negative = isinstance(value, exp.Neg)
    plain = value.this if negative else value
    if not isinstance(plain, exp.Literal) or plain.is_string or not str(plain.this).isdigit():
        return None
    return -int(plain.this) if negative else int(plain.this)


def _numbered(column: str, sign: str, number: int) -> Iterator[Narrowing]:
    if column == "_partition":
        if sign == "=":
            yield Narrowing(partitions=(number,))
        return
    start = {"=": number, ">=": number, ">": number + 1}.get(sign)
    end = {"=": number + 1, "<=": number + 1, "<": number}.get(sign)
    # An offset that none can be has no room in what is asked of a broker.
    yield Narrowing(
        offset_start=None if start is None else min(max(start, 0), OFFSET_MAX),
        offset_end=None if end is None else min(max(end, 0), OFFSET_MAX),
    )


def _one_of(condition: exp.In, table: str) -> Iterator[Narrowing]:
    from sqlglot import exp

    column, values = condition.this, [_number(one) for one in condition.expressions]
    known = [one for one in values if one is not None]
    if not isinstance(column, exp.Column) or not _is_of(column, table) or not known or len(known) < len(values):
        return
    if condition.args.get("query") is not None:
        return
    if column.name.lower() == "_partition":
        yield Narrowing(partitions=tuple(sorted(set(known))))
    elif column.name.lower() == "_offset":
        yield Narrowing(offset_start=max(min(known), 0), offset_end=max(max(known) + 1, 0))
