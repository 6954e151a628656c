"""What all table sinks can be told, and the refusal of what none of them understands."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from moldau.spark.option_values import OptionError, OptionValues, wrong_option

# Spark puts these beside the user's own; they are not ours to refuse.
SPARK_OPTIONS = ("path", "checkpointLocation", "queryName")
SHARED_OPTIONS = (
    "mode",
    "keys",
    "orderBy",
    "operationColumn",
    "deleteWhen",
    "delivery",
    "queryId",
    "batchId",
    "readAnew",
    "mergeSchema",
)
LAKE_OPTIONS = ("partitionBy", "targetFileSize")
# What each kind of table has of its own, and how the names begin that are passed on to its library.
DELTA_OPTIONS = ("path", *LAKE_OPTIONS)
STORAGE_PREFIX = "storage."
ICEBERG_OPTIONS = ("table", "warehouse", "catalog", *LAKE_OPTIONS)
CATALOG_PREFIX = "catalog."
DATABASE_OPTIONS = ("url", "dbtable")
URL_EXAMPLE = "postgresql://user@host/shop or sqlite:///data/shop.db"
# What change-data-capture envelopes call the end of a row.
DELETE_WHEN_DEFAULT = "d,delete"
SIZE_SHIFTS = {"": 0, "k": 10, "m": 20, "g": 30}
FILE_BYTES_DEFAULT = 256 << 20

Choice = TypeVar("Choice", bound=StrEnum)


class Mode(StrEnum):
    APPEND = "append"
    UPSERT = "upsert"


class Delivery(StrEnum):
    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How rows become part of the table, whatever kind of table it is."""

    mode: Mode = Mode.APPEND
    keys: tuple[str, ...] = ()
    order_by: str | None = None
    operation_column: str | None = None
    delete_when: tuple[str, ...] = ()
    delivery: Delivery = Delivery.EXACTLY_ONCE
    query_id: str | None = None
    batch: int | None = None
    merge_schema: bool = False


def names_of(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def chosen(options: Mapping[str, str], name: str, default: Choice) -> Choice:
    kind = type(default)
    return kind(OptionValues(options).choice(name, [choice.value for choice in kind], default=default.value))


def required(options: Mapping[str, str], name: str, *, example: str) -> str:
    text = options.get(name.lower(), "")
    if not text:
        raise OptionError(f"option {name} is missing: for example {example}")
    return text


def with_prefix(options: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Options that are passed on to a library under their own names."""
    return {name[len(prefix) :]: value for name, value in options.items() if name.startswith(prefix)}


def refuse_unknown(options: Mapping[str, str], own: Collection[str], prefixes: tuple[str, ...] = ()) -> None:
    """A mistyped name would otherwise be a setting that silently doesn't count."""
    known = (*own, *SHARED_OPTIONS)
    understood = {name.lower() for name in (*known, *SPARK_OPTIONS)}
    unknown = [name for name in options if name.lower() not in understood and not name.lower().startswith(prefixes)]
    if unknown:
        allowed = ", ".join((*known, *(f"{prefix}*" for prefix in prefixes)))
        raise OptionError(f"option {unknown[0]!r} is not known here: there are {allowed}")


def batch_number(options: Mapping[str, str]) -> int | None:
    text = options.get("batchid")
    if text is None:
        return None
    if not text.isdigit():
        raise OptionError(f"option batchId={text!r}: it takes a number, as foreachBatch gives it")
    if "queryid" not in options:
        raise OptionError("option batchId needs queryId: a batch number means something within one query only")
    return int(text)


def write_options(options: Mapping[str, str]) -> WriteOptions:
    keys = names_of(options.get("keys", ""))
    mode = chosen(options, "mode", Mode.UPSERT if keys else Mode.APPEND)
    if mode is Mode.UPSERT and not keys:
        raise OptionError("option mode='upsert' needs keys: the columns that say which row is meant, as in keys=id")
    for name in ("keys", "orderBy", "operationColumn"):
        if mode is Mode.APPEND and options.get(name.lower()):
            raise OptionError(f"option {name} has no meaning with mode='append': every row is kept")
    return WriteOptions(
        mode=mode,
        keys=keys,
        order_by=options.get("orderby"),
        operation_column=options.get("operationcolumn"),
        delete_when=tuple(word.lower() for word in names_of(options.get("deletewhen", DELETE_WHEN_DEFAULT))),
        delivery=chosen(options, "delivery", Delivery.EXACTLY_ONCE),
        query_id=options.get("queryid"),
        batch=batch_number(options),
        merge_schema=OptionValues(options).boolean("mergeSchema", default=False),
    )


def file_bytes(options: Mapping[str, str], default: str | None) -> int:
    """`128m`, `1g`, or a number of bytes; what the table itself says if no option does."""
    text = options.get("targetfilesize") or default
    if text is None:
        return FILE_BYTES_DEFAULT
    matched = re.fullmatch(r"([0-9]{1,15})\s*([kmg]?)(?:i?b)?", text.strip().lower())
    if matched is None or not int(matched[1]):
        raise wrong_option("targetFileSize", text, "allowed is a number of bytes above 0, or one like 512k, 128m or 1g")
    return int(matched[1]) << SIZE_SHIFTS[matched[2]]
