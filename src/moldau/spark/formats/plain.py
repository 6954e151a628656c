"""Bytes as they are, and text."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from moldau.spark.formats.interface import Decoded, FormatError, Side, as_binary, decoded_rows
from moldau.spark.formats.type_names import spark_name

TEXT_OR_BYTES = (pa.binary(), pa.large_binary(), pa.string(), pa.large_string())


@dataclass(frozen=True, slots=True)
class BinaryDecoder:
    @property
    def arrow_type(self) -> pa.DataType:
        return pa.binary()

    def decode(self, column: pa.BinaryArray) -> Decoded:
        return Decoded(as_binary(column), failed=None, reasons=[])


@dataclass(frozen=True, slots=True)
class StringDecoder:
    side: Side

    @property
    def arrow_type(self) -> pa.DataType:
        return pa.string()

    def decode(self, column: pa.BinaryArray) -> Decoded:
        try:
            return Decoded(column.cast(pa.string()), failed=None, reasons=[])
        except pa.ArrowInvalid:
            return self._decode_one_by_one(column)

    def _decode_one_by_one(self, column: pa.BinaryArray) -> Decoded:
        texts: list[str | None] = []
        failures: dict[int, str] = {}
        for row, text in enumerate(column.to_pylist()):
            try:
                texts.append(None if text is None else text.decode())
            except UnicodeDecodeError as error:
                failures[row] = f"{self.side}: not UTF-8 at byte {error.start}"
                texts.append(None)
        return decoded_rows(pa.array(texts, pa.string()), failures=failures)


@dataclass(frozen=True, slots=True)
class BinaryEncoder:
    """Bytes and text go out as they are, as from the stock connector's sink."""

    side: Side

    def check(self, arrow_type: pa.DataType) -> None:
        if arrow_type not in TEXT_OR_BYTES:
            raise FormatError(
                f"column {self.side} is {spark_name(arrow_type)}; {self.side}Format=binary takes binary or string, "
                "json and avro take every type"
            )

    def encode(self, column: pa.Array) -> pa.BinaryArray:
        self.check(column.type)
        return as_binary(column)


@dataclass(frozen=True, slots=True)
class StringEncoder:
    """Text, and any value with one obvious text: numbers, booleans, dates, timestamps."""

    side: Side

    def check(self, arrow_type: pa.DataType) -> None:
        if pa.types.is_nested(arrow_type):
            raise FormatError(
                f"column {self.side} is {spark_name(arrow_type)}, which has no plain text; use {self.side}Format=json"
            )

    def encode(self, column: pa.Array) -> pa.BinaryArray:
        self.check(column.type)
        text = column if column.type in TEXT_OR_BYTES else column.cast(pa.string())
        return as_binary(text)
