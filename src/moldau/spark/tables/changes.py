"""One row for each key: of several rows of a key in a batch the last one counts, and some of them are deletions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from moldau.spark.tables.options import WriteOptions

ROW_NUMBER = "__moldau_row"


class NullKey(ValueError):
    """A row that says nothing about which row of the table it is."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Each key is in one of the two tables at most, and there once."""

    upserts: pa.Table
    deletions: pa.Table


def check_keys(batch: pa.RecordBatch, keys: tuple[str, ...]) -> None:
    for key in keys:
        if batch.column(key).null_count:
            raise NullKey(f"column {key!r} is one of the keys of an upsert, and a row has null there")


def latest_by_key(rows: pa.Table, keys: tuple[str, ...], order_by: str | None) -> pa.Table:
    """The row that is last by the ordering column, and among equals (or without one) last by position."""
    numbered = rows.append_column(ROW_NUMBER, pa.array(np.arange(rows.num_rows)))
    order = [] if order_by is None else [(order_by, "descending")]
    # Nulls are sorted last in either direction: a row without an order gives way to any that has one.
    latest_first = rows.take(pc.sort_indices(numbered, sort_keys=[*order, (ROW_NUMBER, "descending")]))
    ranked = latest_first.select(list(keys)).append_column(ROW_NUMBER, numbered[ROW_NUMBER])
    positions = ranked.group_by(list(keys)).aggregate([(ROW_NUMBER, "min")])[f"{ROW_NUMBER}_min"]
    return latest_first.take(positions.take(pc.sort_indices(positions)))


def changes_of(rows: pa.Table, options: WriteOptions) -> Changes:
    latest = latest_by_key(rows, options.keys, options.order_by)
    column = options.operation_column
    if column is None:
        return Changes(upserts=latest, deletions=latest.slice(0, 0))
    words = pc.utf8_lower(latest[column].cast(pa.string()))
    deleted = pc.fill_null(pc.is_in(words, pa.array(options.delete_when, pa.string())), False)
    stored = latest.drop_columns([column])
    return Changes(upserts=stored.filter(pc.invert(deleted)), deletions=stored.filter(deleted))
