"""What the source or the sink of a table would refuse by its options alone, found before Spark is started."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from moldau.spark.option_values import OptionError
from moldau.spark.pipelines.plan import Connector, Endpoint, Sink, Source
from moldau.spark.pipelines.running.frames.sources import FILE_FORMATS, TABLE_OPTIONS
from moldau.spark.tables.databases.table_names import POSTGRESQL_SCHEMES, SQLITE_SCHEMES
from moldau.spark.tables.options import (
    CATALOG_PREFIX,
    DATABASE_OPTIONS,
    DELTA_OPTIONS,
    ICEBERG_OPTIONS,
    STORAGE_PREFIX,
    URL_EXAMPLE,
    file_bytes,
    refuse_unknown,
    required,
    write_options,
)


class Known(NamedTuple):
    """The options of a connector, and how the names of others begin that it passes on."""

    names: tuple[str, ...]
    prefixes: tuple[str, ...] = ()


KNOWN = {
    Connector.DELTA: Known(DELTA_OPTIONS, (STORAGE_PREFIX,)),
    Connector.ICEBERG: Known(ICEBERG_OPTIONS, (CATALOG_PREFIX,)),
    Connector.DATABASE: Known(DATABASE_OPTIONS),
}


def wrong_table_source(source: Source) -> str | None:
    return _first_wrong(source.endpoint, {}, writes=False)


def wrong_table_sink(sink: Sink) -> str | None:
    upsert = {"mode": "upsert", "keys": ",".join(sink.keys)} if sink.is_upsert and sink.keys else {}
    return _first_wrong(sink.endpoint, upsert, writes=True)


def _first_wrong(endpoint: Endpoint, implied: Mapping[str, str], *, writes: bool) -> str | None:
    given = {name.lower(): value for name, value in endpoint.options.items()}
    try:
        if endpoint.connector is Connector.FILES:
            _check_files(given)
        elif endpoint.connector in KNOWN:
            where = {TABLE_OPTIONS[endpoint.connector]: endpoint.location}
            _check_table(endpoint, {**where, **implied, **given}, writes=writes)
    except OptionError as wrong:
        return str(wrong)
    return None


def _check_files(options: Mapping[str, str]) -> None:
    kind = options.get("format")
    if kind is not None and kind not in FILE_FORMATS:
        raise OptionError(f"format {kind!r} is unknown; allowed: {', '.join(FILE_FORMATS)}")


def _check_table(endpoint: Endpoint, options: Mapping[str, str], *, writes: bool) -> None:
    known = KNOWN[endpoint.connector]
    refuse_unknown(options, known.names, known.prefixes)
    if endpoint.connector is Connector.DATABASE:
        _check_url(required(options, "url", example=URL_EXAMPLE))
    if endpoint.connector is Connector.ICEBERG:
        _check_iceberg(endpoint.location, options, writes=writes)
    if writes:
        write_options(options)
        file_bytes(options, None)


def _check_url(url: str) -> None:
    if not url.startswith((*POSTGRESQL_SCHEMES, *SQLITE_SCHEMES, "${env:")):
        scheme = url.partition(":")[0]
        raise OptionError(f"option url: {scheme!r} is not known; for example {URL_EXAMPLE}")


def _check_iceberg(table: str, options: Mapping[str, str], *, writes: bool) -> None:
    has_catalog = any(name == "catalog" or name.startswith(CATALOG_PREFIX) for name in options)
    if not options.get("warehouse") and not has_catalog:
        raise OptionError(
            "option warehouse is missing: a folder, or a catalog by catalog=NAME or catalog.uri=…, catalog.type=…"
        )
    if writes and "." not in table:
        raise OptionError(f"{table!r} is no table of Iceberg: it takes NAMESPACE.TABLE")
