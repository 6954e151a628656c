"""Which names a query reads, found by parsing it, so that a pipeline's graph needs no Spark."""

from __future__ import annotations

import re

from moldau.spark.pipelines.plan import Location, PipelineError, Query

# The parser takes it for the WINDOW clause where it comes first in GROUP BY.
WINDOW = re.compile(r"\bwindow\s*\(", re.IGNORECASE)


def sql_query(text: str, place: Location) -> Query:
    return Query(inputs_of(text, place), sql=text)


def inputs_of(text: str, place: Location) -> tuple[str, ...]:
    """In the order of appearance, without the query's own common table expressions."""
    import sqlglot  # takes a tenth of a second that only pipelines should pay
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        parsed = sqlglot.parse_one(WINDOW.sub("time_window(", text), read="spark")
    except SqlglotError as wrong:
        raise PipelineError(*_located(wrong, place)) from None
    if not isinstance(parsed, exp.Query):
        raise PipelineError(place, f"a query was expected here, found {text.split(maxsplit=1)[0].upper()}")
    own = {one.alias_or_name for one in parsed.find_all(exp.CTE)}
    named = (table.name for table in parsed.find_all(exp.Table) if table.name and not table.db)
    return tuple(dict.fromkeys(name for name in named if name not in own))


def _located(wrong: Exception, place: Location) -> tuple[Location, str]:
    """The parser counts lines from the start of the query."""
    errors = getattr(wrong, "errors", None) or [{}]
    first = errors[0]
    line = place.line + max(first.get("line") or 1, 1) - 1
    description = str(first.get("description") or str(wrong).splitlines()[0]).rstrip(".")
    near = str(first.get("highlight") or "").strip()
    return place._replace(line=line), f"{description}{f', near {near!r}' if near else ''}"
