"""Lists of Arrow taken apart and put together again."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def flat_offsets(values: pa.Array) -> pa.Int32Array:
    """Where the elements of each list (or map) begin in `flatten()`, which leaves out what stands below nulls."""
    lists = values
    if pa.types.is_map(values.type):
        entry = pa.struct([("key", values.type.key_type), ("value", values.type.item_type)])
        lists = values.cast(pa.list_(entry))
    lengths = pc.fill_null(pc.list_value_length(lists), 0).cast(pa.int32())
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
