"""JSON records to a typed Arrow column: whole runs of records by Arrow's reader, the doubtful ones one by one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from moldau.spark.formats.interface import Decoded, Side, as_binary, decoded_rows
from moldau.spark.formats.json_values import check_for, parse_json
from moldau.spark.formats.misfit import Misfit
from moldau.spark.formats.type_names import struct_fields

ONE_BY_ONE_ROWS_MAX = 32  # a run with a doubtful record is cut until it is this short, and then read record by record
CUT_INTO = 8
BLOCK_BYTES_MAX = 1 << 30  # Arrow's reader counts a block's bytes in 31 bits
DECIMAL_DIGITS_FAST_MAX = 18

# What Arrow's reader takes and JSON or a person would not, or what the two read differently.
DOUBTFUL = (b"NaN", b"Inf", b'"0000-')
# Arrow's reader of decimals computes silently wrong values from long numbers and touches memory that is not its own for
# exponents, so no such text may reach it. The last alternative finds them in disguise: a number as text with escapes.
DOUBTFUL_DECIMAL = r'[\s:,\["][-+]?[0-9.]+[eE]|[0-9.]{19}|\\u00(?:3[0-9]|[46]5|2[bBdDeE])'


@dataclass(frozen=True)
class JsonDecoder:
    """Reads each record as one JSON value of `arrow_type`; members that the type lacks are left out."""

    arrow_type: pa.DataType
    side: Side
    reader_type: pa.DataType | None = field(init=False)

    def __post_init__(self) -> None:
        check_for(self.arrow_type)  # a type without a JSON form is refused here, before anything runs
        # Only records that are objects can be told apart by their ends (see `_read_run`).
        fast = readable_type(self.arrow_type) if pa.types.is_struct(self.arrow_type) else None
        object.__setattr__(self, "reader_type", fast)

    def decode(self, column: pa.BinaryArray) -> Decoded:
        column = as_binary(column)
        texts = column.drop_null()
        run = _Run(self)
        run.read(texts, first_row=0)
        values = pa.concat_arrays(run.pieces) if run.pieces else pa.nulls(0, self.arrow_type)
        if not column.null_count:
            return decoded_rows(values, failures=run.failures)
        rows = pc.indices_nonzero(column.is_valid()).to_pylist()
        positions: list[int | None] = [None] * len(column)
        for at, row in enumerate(rows):
            positions[row] = at
        spread = values.take(pa.array(positions, pa.int64()))
        return decoded_rows(spread, failures={rows[at]: reason for at, reason in run.failures.items()})


class _Run:
    """The reading of one column without nulls: typed pieces in order, and the reasons by row."""

    def __init__(self, decoder: JsonDecoder) -> None:
        self.arrow_type = decoder.arrow_type
        self.reader_type = decoder.reader_type
        self.side = decoder.side
        self.check = check_for(decoder.arrow_type)
        self.pieces: list[pa.Array] = []
        self.failures: dict[int, str] = {}

    def read(self, texts: pa.BinaryArray, *, first_row: int) -> None:
        if self.reader_type is None:
            self.read_one_by_one(texts, first_row=first_row)
            return
        piece = _read_run(texts, arrow_type=self.arrow_type, reader_type=self.reader_type)
        if piece is not None:
            self.pieces.append(piece)
        elif len(texts) <= ONE_BY_ONE_ROWS_MAX:
            self.read_one_by_one(texts, first_row=first_row)
        else:
            size = max(ONE_BY_ONE_ROWS_MAX, -(-len(texts) // CUT_INTO))
            for at in range(0, len(texts), size):
                self.read(texts.slice(at, size), first_row=first_row + at)

    def read_one_by_one(self, texts: pa.BinaryArray, *, first_row: int) -> None:
        values: list[Any] = []
        for row, text in enumerate(texts.to_pylist(), first_row):
            try:
                parsed = parse_json(text)
                values.append(None if parsed is None else self.check(parsed))
            except Misfit as misfit:
                self.failures[row] = f"{self.side}: {misfit}"
                values.append(None)
        self.pieces.append(pa.array(values, self.arrow_type))


def _read_run(texts: pa.BinaryArray, *, arrow_type: pa.StructType, reader_type: pa.StructType) -> pa.StructArray | None:
    """All of the records at once, or None if any of them needs a closer look.

    Arrow's reader takes values one after the other and doesn't care where a line ends. Where each record begins with
    { and ends with }, what stands between two records is }, a line's end, and {: legal between two values only, never
    inside one. So each record holds at least one whole object, and as many rows as records means exactly one each.
    """
    if not len(texts):
        return pa.nulls(0, arrow_type)
    if not (pc.all(pc.starts_with(texts, b"{")).as_py() and pc.all(pc.ends_with(texts, b"}")).as_py()):
        return None
    try:
        strings = texts.cast(pa.string())  # also looks whether it is UTF-8, which the reader does not
        joined = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts), b"\n")
    except pa.ArrowInvalid:
        return None
    block = joined[0].as_py()
    if len(block) > BLOCK_BYTES_MAX or any(mark in block for mark in DOUBTFUL):
        return None
    if has_decimal(arrow_type) and pc.any(pc.match_substring_regex(strings, DOUBTFUL_DECIMAL)).as_py():
        return None
    try:
        table = _read_block(block, reader_type=reader_type)
        if table.num_rows != len(texts):
            return None
        rows = table.to_struct_array()
        rows = rows.combine_chunks() if isinstance(rows, pa.ChunkedArray) else rows
        values = rows.cast(as_nullable(arrow_type))
    except pa.ArrowException:
        return None
    # The flags of nullability are part of the type and not of the data: seen as the wanted type, not copied.
    return relabelled(values, arrow_type) if fits(values, arrow_type) else None


def _read_block(block: bytes, *, reader_type: pa.StructType) -> pa.Table:
    return pyarrow.json.read_json(
        pa.BufferReader(block),
        # One block, so that no record is cut; one thread, because Spark runs a task for each core.
        read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(block) + 1),
        parse_options=pyarrow.json.ParseOptions(
            explicit_schema=pa.schema(struct_fields(reader_type)), unexpected_field_behavior="ignore"
        ),
    )


def readable_type(arrow_type: pa.DataType) -> pa.DataType | None:
    """What Arrow's reader is asked for so that a cast gives `arrow_type`, or None where it has no exact way."""
    if pa.types.is_map(arrow_type) or arrow_type == pa.binary():
        return None
    if arrow_type == pa.date32() or (pa.types.is_timestamp(arrow_type) and arrow_type.tz is None):
        return pa.string()  # the reader wants days as numbers, and would drop a time zone without a word
    if pa.types.is_decimal(arrow_type):
        return pa.decimal128(38, arrow_type.scale) if arrow_type.scale <= DECIMAL_DIGITS_FAST_MAX else None
    if pa.types.is_list(arrow_type):
        element = readable_type(arrow_type.value_type)
        return None if element is None else pa.list_(element)
    if pa.types.is_struct(arrow_type):
        members = [(member.name, readable_type(member.type)) for member in struct_fields(arrow_type)]
        return None if any(member is None for _, member in members) else pa.struct(members)
    return arrow_type


def has_decimal(arrow_type: pa.DataType) -> bool:
    if pa.types.is_struct(arrow_type):
        return any(has_decimal(member.type) for member in struct_fields(arrow_type))
    return has_decimal(arrow_type.value_type) if pa.types.is_list(arrow_type) else pa.types.is_decimal(arrow_type)


def as_nullable(arrow_type: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(arrow_type):
        return pa.struct([(member.name, as_nullable(member.type)) for member in struct_fields(arrow_type)])
    return pa.list_(as_nullable(arrow_type.value_type)) if pa.types.is_list(arrow_type) else arrow_type


def fits(values: pa.Array, arrow_type: pa.DataType) -> bool:
    """Whether every value that must not be null isn't, and no number became infinite on its way into a float."""
    if pa.types.is_struct(arrow_type):
        present = values.filter(values.is_valid()) if values.null_count else values
        return all(
            (member.nullable or not present.field(at).null_count) and fits(present.field(at), member.type)
            for at, member in enumerate(struct_fields(arrow_type))
        )
    if pa.types.is_list(arrow_type):
        elements = values.flatten()
        return (arrow_type.value_field.nullable or not elements.null_count) and fits(elements, arrow_type.value_type)
    return arrow_type != pa.float32() or not pc.any(pc.is_inf(values)).as_py()


def relabelled(values: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """The same buffers under a type that differs in names and nullability of inner fields only."""
    if values.type.equals(arrow_type):
        return values
    if pa.types.is_struct(arrow_type):
        children = [relabelled(values.field(at), member.type) for at, member in enumerate(struct_fields(arrow_type))]
        mask = values.is_null() if values.null_count else None
        return pa.StructArray.from_arrays(children, fields=struct_fields(arrow_type), mask=mask)
    assert pa.types.is_list(arrow_type), "only structs and lists have fields inside"
    elements = relabelled(values.values, arrow_type.value_type)
    mask = values.is_null() if values.null_count else None
    return pa.ListArray.from_arrays(values.offsets, elements, type=arrow_type, mask=mask)
