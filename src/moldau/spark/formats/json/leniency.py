"""What Arrow's reader does not take of JSON that fits, put before it in a form that it takes: whole runs at a time.

Two cases are common enough to need it: instants with nanoseconds, as Java writes them, and numbers in a field of text.
Read one by one, they would cost twenty to forty times as much.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from moldau.spark.formats.type_names import struct_fields

PLAIN_NAME = re.compile(r"[A-Za-z0-9_]+")
# As JSON has them; whatever else begins like a number is left as it is, and is no JSON before and after.
NUMBER_OR_BOOLEAN = r"(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false)\b"
NANOSECONDS = (
    r"^([0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6})[0-9]{1,3}"
    r"(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?$"
)
WITHOUT_ZONE = r"^([0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+)$"
DAY = r"^([0-9]{4}-[0-9]{2}-[0-9]{2})$"


@dataclass(frozen=True, slots=True)
class Leniency:
    """How a run is put before the reader when it has refused it as it is; times are read as text."""

    reader_type: pa.StructType
    unquoted: str | None  # finds values without quotes of members that are text, as a pattern of RE2

    def quoted(self, joined: pa.Array) -> pa.Array:
        """Numbers and booleans of text fields in quotes, letter by letter as they are.

        In JSON a name between two quotes, the first without a backslash before it, and a colon is a member's name:
        inside of a text the second quote would have to be escaped. The value that follows is one token, and is one in
        quotes too, so that JSON stays JSON and what is none stays none. Members of that name in places that the
        schema does not know are left out, quoted or not.
        """
        return joined if self.unquoted is None else pc.replace_substring_regex(joined, self.unquoted, r'\1"\2"')


def leniency(arrow_type: pa.StructType, reader_type: pa.StructType) -> Leniency | None:
    """None where it would change nothing."""
    names = sorted(_texts(arrow_type))
    if not names and not any(pa.types.is_timestamp(kind) for _, kind in members(arrow_type)):
        return None
    pattern = rf'([^\\]"(?:{"|".join(names)})"\s*:\s*)({NUMBER_OR_BOOLEAN})' if names else None
    return Leniency(times_as_text(reader_type), pattern)


def _texts(arrow_type: pa.StructType) -> set[str]:
    """Names of members that are text wherever the schema has one of that name."""
    found = list(members(arrow_type))
    other = {name for name, kind in found if kind != pa.string()}
    return {name for name, _ in found if name not in other and PLAIN_NAME.fullmatch(name)}


def members(arrow_type: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """Names and types of all members, at any depth; elements of lists have no name."""
    if pa.types.is_list(arrow_type):
        yield "", arrow_type.value_type
        yield from members(arrow_type.value_type)
    elif pa.types.is_struct(arrow_type):
        for field in struct_fields(arrow_type):
            yield field.name, field.type
            yield from members(field.type)


def times_as_text(arrow_type: pa.DataType) -> pa.DataType:
    if pa.types.is_list(arrow_type):
        return pa.list_(times_as_text(arrow_type.value_type))
    if pa.types.is_struct(arrow_type):
        return pa.struct([(field.name, times_as_text(field.type)) for field in struct_fields(arrow_type)])
    return pa.string() if pa.types.is_timestamp(arrow_type) else arrow_type


def with_times(values: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """Texts of times as times; `ArrowInvalid` where one needs a closer look."""
    if pa.types.is_timestamp(arrow_type):
        return times_of(values, arrow_type)
    if pa.types.is_list(arrow_type):
        elements = with_times(values.values, arrow_type.value_type)
        mask = values.is_null() if values.null_count else None
        return pa.ListArray.from_arrays(values.offsets, elements, mask=mask)
    if pa.types.is_struct(arrow_type):
        fields = struct_fields(arrow_type)
        children = [with_times(values.field(at), field.type) for at, field in enumerate(fields)]
        mask = values.is_null() if values.null_count else None
        return pa.StructArray.from_arrays(children, names=[field.name for field in fields], mask=mask)
    return values


def times_of(texts: pa.StringArray, arrow_type: pa.TimestampType) -> pa.Array:
    """Digits below the microsecond are dropped, which is what the exact rules do; without a zone it is UTC."""
    texts = pc.replace_substring_regex(texts, NANOSECONDS, r"\1\2")
    if arrow_type.tz is not None and not pc.all(pc.ends_with(texts, "Z")).as_py():
        texts = pc.replace_substring_regex(texts, DAY, r"\1T00:00:00Z")
        texts = pc.replace_substring_regex(texts, WITHOUT_ZONE, r"\1Z")
    return texts.cast(arrow_type)
