"""Avro's decimals, exact: fastavro calls these for the logical type of our own name."""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any

from fastavro.read import LOGICAL_READERS
from fastavro.write import LOGICAL_WRITERS

from moldau.spark.formats.avro.schema import OUR_DECIMAL

ANY_DECIMAL = Context(prec=80)  # two decimals of 38 digits fit in it


def read_decimal(data: bytes, writer_schema: Any = None, _reader_schema: Any = None) -> Decimal:
    unscaled = int.from_bytes(data, "big", signed=True)
    precision = int(writer_schema["precision"])
    if abs(unscaled) >= 10**precision:
        raise ValueError(f"a decimal of more than {precision} digits")
    return Decimal(unscaled).scaleb(-int(writer_schema.get("scale", 0)), ANY_DECIMAL)


def write_decimal(value: Any, schema: Any) -> Any:
    if not isinstance(value, Decimal):
        return value
    unscaled = int(value.scaleb(int(schema.get("scale", 0)), ANY_DECIMAL))
    if "size" in schema:
        return unscaled.to_bytes(int(schema["size"]), "big", signed=True)
    return unscaled.to_bytes((unscaled + (unscaled < 0)).bit_length() // 8 + 1, "big", signed=True)


# fastavro has one table for the process; our name can be nobody else's.
LOGICAL_READERS[f"bytes-{OUR_DECIMAL}"] = LOGICAL_READERS[f"fixed-{OUR_DECIMAL}"] = read_decimal
LOGICAL_WRITERS[f"bytes-{OUR_DECIMAL}"] = LOGICAL_WRITERS[f"fixed-{OUR_DECIMAL}"] = write_decimal
