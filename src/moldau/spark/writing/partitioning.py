"""Which partition a record goes to, for whole columns of keys at once: Java's choice for every key.

librdkafka would choose too, one record at a time, at two thirds of the price of writing it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Uint32s: TypeAlias = npt.NDArray[np.uint32]

SEED = np.uint32(0x9747B28C)
MULTIPLIER = np.uint32(0x5BD1E995)
KEY_BYTES_MAX = 512  # each four bytes of the longest key are a round over the column


def rows_by_partition(keys: pa.Array | None, *, count: int, partitions: int) -> Iterator[tuple[int, Any]]:
    """Partitions with the numbers of their rows, in order; records without a key stay together on one, by chance."""
    sticky = random.randrange(partitions)
    if keys is None or keys.null_count == count:
        yield sticky, None
        return
    chosen = (murmur2(keys) & np.uint32(0x7FFFFFFF)) % np.uint32(partitions)
    if keys.null_count:
        chosen[np.asarray(keys.is_null().to_numpy(zero_copy_only=False))] = sticky
    order = np.argsort(chosen, kind="stable")
    edges = np.searchsorted(chosen[order], np.arange(partitions + 1))
    for partition in range(partitions):
        rows = order[edges[partition] : edges[partition + 1]]
        if len(rows):
            yield partition, rows


def can_choose(keys: pa.Array | None) -> bool:
    """Very long keys are left to librdkafka."""
    return keys is None or not len(keys) or int(_sizes(keys)[1].max()) <= KEY_BYTES_MAX


def murmur2(keys: pa.Array) -> Uint32s:
    """The hash of Kafka's default partitioner for each key; what stands for null has no meaning."""
    at, sizes = _sizes(keys)
    buffer = keys.buffers()[2]
    data = np.frombuffer(buffer if buffer is not None and buffer.size else b"\0", np.uint8)
    with np.errstate(over="ignore"):
        hashes: Uint32s = SEED ^ sizes.astype(np.uint32)
        rows = np.flatnonzero(sizes >= 4)
        done = 0
        while len(rows):
            words = _word(data, at[rows] + done)
            words = words * MULTIPLIER
            words ^= words >> np.uint32(24)
            hashes[rows] = hashes[rows] * MULTIPLIER ^ words * MULTIPLIER
            done += 4
            rows = rows[sizes[rows] >= done + 4]
        _mix_tails(data, at, sizes, hashes)
        hashes ^= hashes >> np.uint32(13)
        hashes *= MULTIPLIER
        hashes ^= hashes >> np.uint32(15)
    return hashes


def _mix_tails(data: npt.NDArray[np.uint8], at: Any, sizes: Any, hashes: Uint32s) -> None:
    """The last one to three bytes."""
    left = sizes % 4
    ends = at + sizes - left
    for position in (2, 1, 0):
        rows = np.flatnonzero(left > position)
        hashes[rows] ^= data[ends[rows] + position].astype(np.uint32) << np.uint32(8 * position)
    rows = np.flatnonzero(left)
    hashes[rows] *= MULTIPLIER


def _word(data: npt.NDArray[np.uint8], at: Any) -> Uint32s:
    word: Uint32s = data[at].astype(np.uint32)
    for byte in (1, 2, 3):
        word |= data[at + byte].astype(np.uint32) << np.uint32(8 * byte)
    return word


def _sizes(keys: pa.Array) -> tuple[Any, Any]:
    """Where each key begins in the column's buffer, and how long it is."""
    edges = np.frombuffer(keys.buffers()[1], np.int32)[keys.offset : keys.offset + len(keys) + 1].astype(np.int64)
    return edges[:-1], np.diff(edges)
