"""Ids of schemas in record headers, on writing: `__key_schema_id` and `__value_schema_id`, once in each record."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from moldau.spark.columns import HEADERS_TYPE


def with_header(headers: pa.Array | None, name: str, value: bytes, payloads: pa.Array) -> pa.Array:
    """The rows' headers and, where there is a payload, this one.

    One of that name that is there already is of the schema that wrote a record which was read, and is left out: of two
    some readers take the first, others the last.
    """
    present = np.flatnonzero(payloads.is_valid().to_numpy(zero_copy_only=False))
    pairs, rows = _others(headers, name)
    added = pa.StructArray.from_arrays(
        [pa.repeat(pa.scalar(name), len(present)), pa.repeat(pa.scalar(value, pa.binary()), len(present))],
        fields=list(HEADERS_TYPE.value_type),
    )
    parents = np.concatenate([rows, present])
    together = pa.concat_arrays([pairs, added]).take(pa.array(np.argsort(parents, kind="stable")))
    ends = np.cumsum(np.bincount(parents, minlength=len(payloads)))
    offsets = pa.array(np.concatenate([[0], ends]), pa.int32())
    return pa.ListArray.from_arrays(offsets, together, type=HEADERS_TYPE)


def _others(headers: pa.Array | None, name: str) -> tuple[pa.Array, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Pairs of other names, each with its row."""
    if headers is None:
        return pa.nulls(0, HEADERS_TYPE.value_type), np.empty(0, np.int64)
    told = headers.cast(HEADERS_TYPE)
    pairs = told.flatten()
    stays = pc.fill_null(pc.not_equal(pc.struct_field(pairs, "key"), name), True)
    return pairs.filter(stays), pc.list_parent_indices(told).filter(stays).to_numpy().astype(np.int64)
