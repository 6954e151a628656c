"""A schema for JSON records from samples of them; the order in which the samples come makes no difference."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from moldau.spark.formats.interface import FormatError, Misfit
from moldau.spark.formats.json.values import INTEGER, Number, parse_json
from moldau.spark.formats.type_names import ddl_of, struct_fields

NOTHING = pa.null()
BIG = pa.decimal128(38, 0)
WIDER = (pa.int64(), BIG, pa.float64())  # a number of one kind fits in every later one
SAMPLED_DEPTH_MAX = 50  # deeper members stay JSON text: Spark's own limits on nesting are not far


@dataclass(frozen=True, slots=True)
class Inferred:
    schema: pa.Schema
    sampled: int
    unreadable: int

    def sentence(self) -> str:
        """What was inferred, for the user to see and to put into the option for the next time."""
        unreadable = f", {self.unreadable} of them not readable" if self.unreadable else ""
        return f"inferred from {self.sampled} records{unreadable}: {self.ddl()}"

    def ddl(self) -> str:
        return ddl_of(self.schema)


def infer_json(samples: Iterable[bytes | None]) -> Inferred:
    """Types widened until all of the samples fit: bigint, decimal(38,0), double; mixed kinds become their JSON text."""
    merged: pa.DataType = NOTHING
    sampled = unreadable = 0
    reasons: set[str] = set()
    for sample in samples:
        if sample is None:
            continue
        sampled += 1
        try:
            merged = widened(merged, type_of(parse_json(sample)))
        except Misfit as misfit:
            unreadable += 1
            reasons.add(str(misfit))
    if sampled == unreadable:
        found = f"none of {sampled} records is JSON ({min(reasons)})" if sampled else "there are no records to look at"
        raise FormatError(f"a schema can't be inferred: {found}; give it in the option valueSchema or keySchema")
    if not pa.types.is_struct(merged):
        raise FormatError(
            "a schema can't be inferred: the records are not all JSON objects; give it in the option valueSchema or "
            "keySchema, for example 'array<bigint>' or 'string'"
        )
    return Inferred(pa.schema(struct_fields(settled(merged))), sampled=sampled, unreadable=unreadable)


def type_of(value: Any, depth: int = 0) -> pa.DataType:
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return pa.bool_()
    if type(value) is Number:
        return _number_type(value)
    if isinstance(value, str) or depth == SAMPLED_DEPTH_MAX:
        return pa.string()
    if isinstance(value, list):
        element: pa.DataType = NOTHING
        for member in value:
            element = widened(element, type_of(member, depth + 1))
        return pa.list_(element)
    members = {name: type_of(member, depth + 1) for name, member in value.items()}
    return pa.struct(sorted(members.items()))


def _number_type(number: Number) -> pa.DataType:
    if not INTEGER.fullmatch(number):
        return pa.float64()
    digits = len(number.lstrip("-"))
    if digits <= 19 and -(1 << 63) <= int(number) < 1 << 63:
        return pa.int64()
    return BIG if digits <= BIG.precision else pa.float64()


def widened(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The narrowest type that holds both; it doesn't matter which comes first, nor how several are paired."""
    if other in (one, NOTHING):
        return one
    if one == NOTHING:
        return other
    if one in WIDER and other in WIDER:
        return max(one, other, key=WIDER.index)
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(widened(one.value_type, other.value_type))
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        members = {field.name: field.type for field in struct_fields(one)}
        for field in struct_fields(other):
            members[field.name] = widened(members.get(field.name, NOTHING), field.type)
        return pa.struct(sorted(members.items()))
    return pa.string()


def settled(arrow_type: pa.DataType) -> pa.DataType:
    """What was never seen with a value is text, and so is an object that never had a member."""
    if pa.types.is_list(arrow_type):
        return pa.list_(settled(arrow_type.value_type))
    if pa.types.is_struct(arrow_type) and arrow_type.num_fields:
        return pa.struct([(field.name, settled(field.type)) for field in struct_fields(arrow_type)])
    return pa.string() if arrow_type == NOTHING or pa.types.is_struct(arrow_type) else arrow_type
