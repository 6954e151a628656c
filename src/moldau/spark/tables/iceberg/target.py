"""`format("moldau_iceberg")`: an Iceberg table as the options name it, made or changed to fit before a task runs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from moldau.spark.option_values import OptionError, wrong_option
from moldau.spark.storage import is_url
from moldau.spark.tables.iceberg.partitions import partition_table, partition_terms, terms_of
from moldau.spark.tables.iceberg.reading import ReadableIceberg
from moldau.spark.tables.iceberg.table import IcebergLake, catalog_of, layout_of
from moldau.spark.tables.lakes import ATTEMPTS_MAX, LakeTarget
from moldau.spark.tables.object_stores import access_by_environment, filled, with_region
from moldau.spark.tables.options import (
    CATALOG_PREFIX,
    ICEBERG_OPTIONS,
    file_bytes,
    refuse_unknown,
    required,
    with_prefix,
    write_options,
)
from moldau.spark.tables.schemas import (
    SchemaMismatch,
    arrow_schema,
    check_columns,
    check_fits,
    evolution,
    evolved,
    table_part,
)
from moldau.spark.tables.sources import TableKind, TableSource

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyspark.sql.types import StructType

STORE_PROPERTIES = ("s3.", "client.")
FILE_SIZE_PROPERTY = "write.target-file-size-bytes"
CREATIONS_MAX = 4


def catalog_properties(options: Mapping[str, str]) -> dict[str, str]:
    """The catalog as pyiceberg wants it; a folder alone is enough for one that SQLite keeps there."""
    properties = with_prefix(options, CATALOG_PREFIX)
    warehouse = options.get("warehouse")
    is_far = bool(warehouse) and is_url(str(warehouse)) and not str(warehouse).startswith("file:")
    if is_far and "uri" not in properties and "catalog" not in options:
        raise OptionError(
            f"option warehouse={warehouse!r}: at a URL it needs a catalog that all can reach, by catalog=NAME or "
            "catalog.uri=…, catalog.type=…; without one it is a folder"
        )
    if warehouse and "uri" not in properties and not is_far:
        folder = Path(warehouse.removeprefix("file://")).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        # Queries of one warehouse wait for each other's commits instead of failing.
        uri = f"sqlite:///{folder}/catalog.db?timeout=60"
        return {"type": "sql", "uri": uri, "warehouse": f"file://{folder}", **properties}
    if not warehouse and not properties and "catalog" not in options:
        raise OptionError(
            "option warehouse is missing: a folder, or a catalog by catalog=NAME or catalog.uri=…, catalog.type=…"
        )
    # A catalog that has a name has its settings in pyiceberg's configuration, before which these would go.
    found = {} if "catalog" in options else _store_properties(properties)
    return {**found, **({"warehouse": warehouse} if warehouse else {}), **properties}


def _store_properties(own: Mapping[str, str]) -> dict[str, str]:
    """The environment counts where the table is named: tasks elsewhere need not have the same."""
    about_stores = {name: value for name, value in own.items() if name.startswith(STORE_PROPERTIES)}
    return with_region(filled(about_stores, access_by_environment(os.environ).for_iceberg()), "s3.region")


def iceberg_target(options: dict[str, str], schema: StructType) -> LakeTarget:
    """The table, made if it is missing; what doesn't fit is refused here, before a task runs."""
    refuse_unknown(options, ICEBERG_OPTIONS, (CATALOG_PREFIX,))
    writing = write_options(options)
    name = required(options, "table", example='.option("table", "shop.orders")')
    if "." not in name:
        raise OptionError(f"option table={name!r}: it takes NAMESPACE.TABLE")
    catalog, properties = options.get("catalog", "moldau"), catalog_properties(options)
    frame = arrow_schema(schema)
    check_columns(frame, writing)
    stored = table_part(frame, writing)
    table = _loaded_or_created(catalog, properties, name, stored)
    _check_partitions(table, options.get("partitionby", ""))
    if writing.merge_schema:
        _evolve(table, stored)
    check_fits(stored, table.schema().as_arrow(), name=name)
    layout = layout_of(table, file_bytes(options, table.properties.get(FILE_SIZE_PROPERTY)))
    location, io_properties = table.location().rstrip("/"), dict(table.io.properties)
    return LakeTarget(IcebergLake(name, catalog, properties, location, io_properties, layout), writing)


def _loaded_or_created(catalog_name: str, properties: Mapping[str, str], name: str, schema: pa.Schema) -> Table:
    """Queries that start at once make the same catalog, namespace or table side by side; a second look finds it made.

    Each kind of catalog has its own way to fail then, so that every failure gets its second look.
    """
    for _ in range(CREATIONS_MAX - 1):
        with contextlib.suppress(Exception):
            return _create(catalog_of(catalog_name, properties), name, schema)
    return _create(catalog_of(catalog_name, properties), name, schema)


def _create(catalog: Catalog, name: str, schema: pa.Schema) -> Table:
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    try:
        return catalog.load_table(name)
    except (NoSuchTableError, NoSuchNamespaceError):
        catalog.create_namespace_if_not_exists(name.rpartition(".")[0])
        return catalog.create_table_if_not_exists(name, schema)


def _check_partitions(table: Table, text: str) -> None:
    """Partitions are given to a table that is new; one that has rows keeps those that it has."""
    terms, found = partition_terms(text), terms_of(table)
    if not terms or terms == found:
        return
    if found or table.current_snapshot() is not None:
        told = ", ".join(name if how == "identity" else f"{how}({name})" for name, how in found)
        is_so = f"is partitioned by {told}" if told else "is not partitioned"
        raise wrong_option("partitionBy", text, f"the table {is_so}, and stays so")
    partition_table(table, terms, text)
    table.refresh()


def _evolve(table: Table, frame: pa.Schema) -> None:
    """Makes room for the frame; another query may be at the same, so that each attempt looks anew."""
    from pyiceberg.exceptions import CommitFailedException, ResolveError, ValidationError

    name = ".".join(table.name())
    for attempt in range(ATTEMPTS_MAX):
        kept = table.schema().as_arrow()
        needed = evolution(frame, kept)
        if not needed:
            return
        # What doesn't fit even so is told before anything is changed.
        check_fits(frame, evolved(kept, needed), name=name)
        try:
            with table.update_schema() as update:
                update.union_by_name(pa.schema([*needed.added, *needed.widened]))
        except (ResolveError, ValidationError) as refused:
            reason = str(refused).partition("\n")[0]
            raise SchemaMismatch(
                f"the frame doesn't fit table {name}, nor can Iceberg change it so: {reason}"
            ) from None
        except CommitFailedException:
            if attempt == ATTEMPTS_MAX - 1:
                raise
        table.refresh()


def readable_iceberg(options: dict[str, str]) -> ReadableIceberg:
    refuse_unknown(options, ICEBERG_OPTIONS, (CATALOG_PREFIX,))
    name = required(options, "table", example='.option("table", "shop.orders")')
    return ReadableIceberg(name, options.get("catalog", "moldau"), catalog_properties(options))


class IcebergSource(TableSource):
    """What Spark finds by the name moldau_iceberg."""

    KIND = TableKind("moldau_iceberg", readable_iceberg, iceberg_target)
