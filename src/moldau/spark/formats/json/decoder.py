"""JSON records to a typed Arrow column: whole runs of records by Arrow's reader, the doubtful ones one by one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from moldau.spark.formats.interface import Decoded, Misfit, Side, as_binary, decoded_rows
from moldau.spark.formats.json.leniency import Leniency, leniency, with_times
from moldau.spark.formats.json.values import check_for, parse_json
from moldau.spark.formats.type_names import struct_fields

# A run with a doubtful record is cut until that is found, or until the run is short enough to be read one by one.
CUT_INTO = 8
ONE_BY_ONE_ROWS_MAX = 32
LOCATING_ROWS_MAX = 4096  # each doubt costs a look at all that is left of the run
DOUBTS_MAX = 16
FUTILE_MAX = 4  # attempts at a lenient reading of one column that got no further than the strict one
ROW_OF_ERROR = re.compile(r" in row ([0-9]+)$")
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


@dataclass(frozen=True, slots=True)
class Doubt:
    """A run that can't be read at once; `row` is the first record that is to blame, where that is known."""

    row: int | None = None

    def is_further_than(self, other: Doubt) -> bool:
        return self.row is not None and other.row is not None and self.row > other.row


class _Run:
    """The reading of one column without nulls: typed pieces in order, and the reasons by row."""

    def __init__(self, decoder: JsonDecoder) -> None:
        self.arrow_type = decoder.arrow_type
        self.reader_type = decoder.reader_type
        self.is_lenient = False
        self.futile = 0
        self.leniency = leniency(decoder.arrow_type, decoder.reader_type) if decoder.reader_type is not None else None
        self.side = decoder.side
        self.check = check_for(decoder.arrow_type)
        self.pieces: list[pa.Array] = []
        self.failures: dict[int, str] = {}

    def read(self, texts: pa.BinaryArray, *, first_row: int) -> None:
        found = self.read_at_once(texts)
        if found is None:
            return
        if self.reader_type is None or len(texts) <= ONE_BY_ONE_ROWS_MAX:
            self.read_one_by_one(texts, first_row=first_row)
        elif found.row is not None and len(texts) <= LOCATING_ROWS_MAX:
            self.read_around(found, texts, first_row=first_row)
        else:
            size = min(LOCATING_ROWS_MAX, max(ONE_BY_ONE_ROWS_MAX, -(-len(texts) // CUT_INTO)))
            for at in range(0, len(texts), size):
                self.read(texts.slice(at, size), first_row=first_row + at)

    def read_at_once(self, texts: pa.BinaryArray) -> Doubt | None:
        if self.reader_type is None:
            return Doubt()
        found = self.attempt(texts, self.leniency if self.is_lenient else None)
        if isinstance(found, Doubt) and not self.is_lenient and self.futile < FUTILE_MAX and self.leniency is not None:
            again = self.attempt(texts, self.leniency)
            # What made it necessary once is likely to come again; it is slower, and reads all that the other way does.
            self.is_lenient = not isinstance(again, Doubt) or again.is_further_than(found)
            self.futile += not self.is_lenient
            found = again if self.is_lenient else found
        if isinstance(found, Doubt):
            return found
        self.pieces.append(found)
        return None

    def attempt(self, texts: pa.BinaryArray, lenient: Leniency | None) -> pa.Array | Doubt:
        assert self.reader_type is not None, "without a type there is nothing to ask the reader for"
        return _read_run(texts, arrow_type=self.arrow_type, reader_type=self.reader_type, lenient=lenient)

    def read_around(self, doubt: Doubt, texts: pa.BinaryArray, *, first_row: int) -> None:
        """A short run with few doubtful records: what lies between them is read at once."""
        found: Doubt | None = doubt
        for _ in range(DOUBTS_MAX):
            if found is None:
                return
            if found.row is None:
                break
            self.read(texts.slice(0, found.row), first_row=first_row)
            self.read_one_by_one(texts.slice(found.row, 1), first_row=first_row + found.row)
            first_row += found.row + 1
            texts = texts.slice(found.row + 1)
            found = self.read_at_once(texts)
        if found is not None:
            self.read_one_by_one(texts, first_row=first_row)

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


def _read_run(
    texts: pa.BinaryArray, *, arrow_type: pa.StructType, reader_type: pa.StructType, lenient: Leniency | None
) -> pa.Array | Doubt:
    """All of the records at once, or a doubt if any of them needs a closer look.

    Arrow's reader takes values one after the other and doesn't care where a line ends. Where each record begins with
    { and ends with }, what stands between two records is }, a line's end, and {: legal between two values only, never
    inside one. So each record holds at least one whole object, and as many rows as records means exactly one each.
    """
    if not len(texts):
        return pa.nulls(0, arrow_type)
    not_object = pc.index(pc.and_(pc.starts_with(texts, b"{"), pc.ends_with(texts, b"}")), False).as_py()
    if not_object >= 0:
        return Doubt(not_object)
    try:
        strings = texts.cast(pa.string())  # also looks whether it is UTF-8, which the reader does not
        joined = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts), b"\n")
    except pa.ArrowInvalid:
        return Doubt()
    if lenient is not None:
        joined, reader_type = lenient.quoted(joined), lenient.reader_type
    block = joined[0].as_py()
    if len(block) > BLOCK_BYTES_MAX or any(mark in block for mark in DOUBTFUL):
        return Doubt()
    if has_decimal(arrow_type) and pc.any(pc.match_substring_regex(strings, DOUBTFUL_DECIMAL)).as_py():
        return Doubt()
    try:
        table = _read_block(block, reader_type=reader_type)
        rows = table.to_struct_array()
        rows = rows.combine_chunks() if isinstance(rows, pa.ChunkedArray) else rows
        values = (rows if lenient is None else with_times(rows, arrow_type)).cast(as_nullable(arrow_type))
    except pa.ArrowException as error:
        named = ROW_OF_ERROR.search(str(error))
        return Doubt(int(named[1]) if named and int(named[1]) < len(texts) else None)
    if len(values) != len(texts) or not fits(values, arrow_type):
        return Doubt()
    # The flags of nullability are part of the type and not of the data: seen as the wanted type, not copied.
    return relabelled(values, arrow_type)


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
