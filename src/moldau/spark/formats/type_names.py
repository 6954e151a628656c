"""Arrow types by the names that Spark's users know."""

from __future__ import annotations

import pyarrow as pa

from moldau.spark.formats.interface import FormatError

NAMES: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.date32(): "date",
    pa.null(): "void",
}


def spark_name(arrow_type: pa.DataType) -> str:
    """`array<struct<id:bigint>>` and the like, as Spark prints types; what Spark lacks keeps Arrow's name."""
    if arrow_type in NAMES:
        return NAMES[arrow_type]
    if pa.types.is_timestamp(arrow_type):
        return "timestamp" if arrow_type.tz else "timestamp_ntz"
    if pa.types.is_decimal(arrow_type):
        return f"decimal({arrow_type.precision},{arrow_type.scale})"
    if pa.types.is_map(arrow_type):
        return f"map<{spark_name(arrow_type.key_type)},{spark_name(arrow_type.item_type)}>"
    if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type):
        return f"array<{spark_name(arrow_type.value_type)}>"
    if pa.types.is_struct(arrow_type):
        fields = (arrow_type.field(at) for at in range(arrow_type.num_fields))
        return f"struct<{','.join(f'{quoted(field.name)}:{spark_name(field.type)}' for field in fields)}>"
    return str(arrow_type)


def quoted(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else quoted_name(name)


def ddl_of(schema: pa.Schema) -> str:
    """The columns as DDL that a schema option takes."""
    return ", ".join(f"{quoted(field.name)} {spark_name(field.type)}" for field in schema)


def struct_fields(arrow_type: pa.StructType) -> list[pa.Field]:
    return [arrow_type.field(at) for at in range(arrow_type.num_fields)]


def struct_of(fields: list[pa.Field], *, place: str) -> pa.StructType:
    """A struct that Spark can hold: with fields, and no two of one name."""
    names = [field.name for field in fields]
    if not fields:
        raise FormatError(f"{place}: a struct needs at least one field")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise FormatError(f"{place}: field {twice[0]} is there twice")
    return pa.struct(fields)


def quoted_name(column: str) -> str:
    """As Spark takes it for one name: without quotes `log.level` is a field of a column `log`."""
    return "`" + column.replace("`", "``") + "`"
