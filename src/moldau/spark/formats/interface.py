"""What every format offers: bytes to a typed Arrow column with the rows that don't fit, and the way back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc

Side = Literal["key", "value"]


class FormatError(ValueError):
    """An option about formats that can't be followed; the message names the option and what is allowed."""


class EncodingFailed(ValueError):
    """A row that its format can't express; the message names the row of the batch, the field and the reason."""


class Misfit(Exception):
    """A record does not fit its schema: the value at `path` is not what the schema says."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.path = path

    def inside(self, step: str) -> Misfit:
        return Misfit(self.message, step + self.path)

    def __str__(self) -> str:
        return f"field {self.path.lstrip('.')}: {self.message}" if self.path else self.message


@dataclass(frozen=True, slots=True)
class Decoded:
    """The typed column; `failed` is None where every row fits, else `reasons` has one entry for each true in it.

    A row that failed is null in `values`, and so is a row without bytes (a tombstone), which did not fail.
    """

    values: pa.Array
    failed: pa.BooleanArray | None
    reasons: list[str]


class Decoder(Protocol):
    @property
    def arrow_type(self) -> pa.DataType: ...

    def decode(self, column: pa.BinaryArray) -> Decoded: ...


@runtime_checkable
class FramedDecoder(Protocol):
    """Of records that name their schema: in front of the payload, or in a header."""

    @property
    def arrow_type(self) -> pa.DataType: ...

    @property
    def reader_id(self) -> int | None:
        """Of the schema that the columns are made of, where the registry knows it."""
        ...

    def decode(self, column: pa.BinaryArray) -> Decoded: ...

    def decode_framed(self, column: pa.BinaryArray, headers: pa.Array | None) -> Decoded: ...


class Encoder(Protocol):
    def check(self, arrow_type: pa.DataType) -> None:
        """Raises FormatError if a column of this type can't be encoded: the driver asks before anything runs."""
        ...

    def encode(self, column: pa.Array) -> pa.BinaryArray: ...


@runtime_checkable
class HeaderEncoder(Protocol):
    """Of records that may name their schema in a header, which is the same for all of a write."""

    @property
    def header(self) -> tuple[str, bytes] | None: ...


@dataclass(frozen=True, slots=True)
class SideOptions:
    """The options of one side, by their names without the side: `Schema` is `valueSchema` or `keySchema`."""

    side: Side
    options: Mapping[str, str]

    def name_of(self, suffix: str) -> str:
        return f"{self.side}{suffix}"

    def get(self, suffix: str) -> str | None:
        """Spark keeps the case of an option's name or not, depending on the way that it came: both are found."""
        wanted = self.name_of(suffix).lower()
        return next((value for name, value in self.options.items() if name.lower() == wanted), None)


def decoded_rows(values: pa.Array, *, failures: Mapping[int, str]) -> Decoded:
    """What a decoder returns, from the reasons by row."""
    if not failures:
        return Decoded(values, failed=None, reasons=[])
    failed = pa.array([row in failures for row in range(len(values))], pa.bool_())
    return Decoded(values, failed=failed, reasons=[failures[row] for row in sorted(failures)])


def as_binary(column: pa.Array) -> pa.BinaryArray:
    """Any of Arrow's string and binary layouts as plain binary; casts of text to bytes copy nothing."""
    return column if column.type == pa.binary() else column.cast(pa.binary())


def flat_offsets(values: pa.Array) -> pa.Int32Array:
    """Where the elements of each list (or map) begin in `flatten()`, which leaves out what stands below nulls."""
    lists = values
    if pa.types.is_map(values.type):
        entry = pa.struct([("key", values.type.key_type), ("value", values.type.item_type)])
        lists = values.cast(pa.list_(entry))
    lengths = pc.fill_null(pc.list_value_length(lists), 0).cast(pa.int32())
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
