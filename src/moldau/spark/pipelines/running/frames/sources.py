"""A plan's sources as frames: topics as streams and tables, change events as rows, tables of elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from moldau.schemas.registry_client import RegistryError
from moldau.spark.formats.interface import FormatError
from moldau.spark.formats.schema_text import parse_schema_text
from moldau.spark.formats.type_names import quoted_name, struct_fields
from moldau.spark.option_values import OptionError
from moldau.spark.options import PREFIXES, READ_COMMITTED, source_options
from moldau.spark.pipelines.plan import Connector, Endpoint, Kind, PipelineError, Plan, Source
from moldau.spark.pipelines.running.frames.schemas import schemas_by_spark
from moldau.spark.pipelines.running.frames.table_stores import table_options
from moldau.spark.pipelines.xml_values import MALFORMED, check_source, is_xml, parsed, text_options
from moldau.spark.registry_names import PREFIX as REGISTRY_PREFIX
from moldau.spark.registry_names import uses_registry

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# What is known about a record beside its value. Sinks leave these columns out unless a query names them anew.
RECORD_COLUMNS = {
    "key": "_key",
    "topic": "_topic",
    "partition": "_partition",
    "offset": "_offset",
    "timestamp": "_timestamp",
    "headers": "_headers",
    MALFORMED: f"_{MALFORMED}",
}
OPERATION = "_op"
CHANGED_AT = "_changed_at"
DELETED = "d"
TOMBSTONE = "_tombstone"
ROW_OPERATIONS = ("c", "u", "d", "r")  # created, updated, deleted, and read when a snapshot was taken
# Which option of a table's connector says where the table is.
TABLE_OPTIONS = {Connector.DELTA: "path", Connector.ICEBERG: "table", Connector.DATABASE: "dbtable"}
TABLE_FORMATS = {
    Connector.DELTA: "moldau_delta",
    Connector.ICEBERG: "moldau_iceberg",
    Connector.DATABASE: "moldau_sql",
}
FILE_FORMATS = ("parquet", "json", "csv", "orc", "text")
BOOTSTRAP = "kafka.bootstrap.servers"
CLIENT_PREFIXES = ("kafka.", REGISTRY_PREFIX)  # settings of a pipeline that are options of its topics
ISOLATION = "kafka.isolation.level"


def read(spark: SparkSession, source: Source, plan: Plan, *, starting: Mapping[str, str] | None = None) -> DataFrame:
    """`starting` replaces where streams begin: a replay."""
    connector = source.endpoint.connector
    if connector in (Connector.TOPIC, Connector.PATTERN):
        frame = _topic(spark, source, plan, starting or {})
        return newest_rows(newest_records(frame, source), source) if source.kind is Kind.TABLE else frame
    return _table(spark, source.endpoint, source)


def read_records(spark: SparkSession, source: Source, plan: Plan) -> DataFrame:
    """Every record of a topic as a row, not the newest of each key."""
    return _topic(spark, source, plan, {}).drop(TOMBSTONE)


def as_read(frame: DataFrame, source: Source) -> DataFrame:
    """The same of records that were read already."""
    return unpacked(frame, source).drop("_tombstone")


def topic_options(endpoint: Endpoint, plan: Plan) -> dict[str, str]:
    """The pipeline's cluster and client settings, then what the endpoint says itself.

    Only committed records are read unless one of them says otherwise: what a pipeline writes is exactly once for those
    readers alone, so that a chain of pipelines would count aborted rows.
    """
    options = {key: value for key, value in plan.settings.items() if key.startswith(CLIENT_PREFIXES) or key in PREFIXES}
    if "bootstrap.servers" in plan.settings:
        options[BOOTSTRAP] = plan.settings["bootstrap.servers"]
    said = dict(endpoint.options)
    if "bootstrap.servers" in said:
        said[BOOTSTRAP] = said.pop("bootstrap.servers")
    return {BOOTSTRAP: "localhost:9092", ISOLATION: READ_COMMITTED, **options, **said}


def read_options(source: Source, plan: Plan) -> dict[str, str]:
    """The options of a read of the source's topics. Needs a session: Spark reads the schemas."""
    options = topic_options(source.endpoint, plan)
    subscribe = "subscribePattern" if source.endpoint.connector is Connector.PATTERN else "subscribe"
    options[subscribe] = source.endpoint.location
    try:
        options = schemas_by_spark(options)
        if is_xml(options):
            check_source(source, options)
            return options
        if reads_by_registry(options):
            return {**options, **_ids_of_registry(options, source)}
        return _envelope(options, source) if source.are_changes else options
    except (FormatError, OptionError, RegistryError) as wrong:
        raise PipelineError(source.place, f"{source.name}: {wrong}") from None


def reads_by_registry(options: Mapping[str, str]) -> bool:
    """Whether the value's columns are a registry's schema."""
    name = next((value for key, value in options.items() if key.lower() == "valueformat"), "")
    return uses_registry(name, options)


def _ids_of_registry(options: dict[str, str], source: Source) -> dict[str, str]:
    """The columns stay as they are while the pipeline runs: every look at a topic is by the same schema."""
    from moldau.spark.reading.typed_columns import registry_ids

    return registry_ids(source_options(options, streaming=source.kind is Kind.STREAM))


def _topic(spark: SparkSession, source: Source, plan: Plan, starting: Mapping[str, str]) -> DataFrame:
    options = read_options(source, plan)
    if source.kind is Kind.TABLE:
        options["readAnew"] = "true"
        return unpacked(spark.read.format("moldau").options(**options).load(), source)
    options = starting_at(options, starting, plan)
    if is_xml(options):
        frame = spark.readStream.format("moldau").options(**text_options(options)).load()
        return unpacked(parsed(frame, options), source)
    return unpacked(spark.readStream.format("moldau").options(**options).load(), source)


def starting_at(options: dict[str, str], starting: Mapping[str, str], plan: Plan) -> dict[str, str]:
    """A replay's start goes before what a stream says, and that before what the pipeline says."""
    said = {key: value for key, value in options.items() if key.lower().startswith("starting")}
    rest = {key: value for key, value in options.items() if key not in said}
    return {**rest, **(starting or said or {"startingOffsets": plan.starts_at})}


def _envelope(options: dict[str, str], source: Source) -> dict[str, str]:
    """The row's schema becomes that of Debezium's envelope around it."""
    from pyspark.sql.pandas.types import from_arrow_schema

    given = {key.lower(): key for key in options}
    if "valueschema" not in given:
        raise PipelineError(source.place, f"change events of {source.name} need valueSchema: the columns of a row")
    asked = parse_schema_text(options[given["valueschema"]], place="option valueSchema")
    if not pa.types.is_struct(asked):
        raise PipelineError(source.place, f"change events of {source.name}: valueSchema has to be the columns of a row")
    # The row before a change may have its key alone, whatever the columns of a row must have.
    row = pa.struct([field.with_nullable(True) for field in struct_fields(asked)])
    envelope = [("before", row), ("after", row), ("op", pa.string()), ("ts_ms", pa.int64())]
    # Connect's JSON converter puts a schema beside each event, unless it is told not to: both shapes are understood.
    wrapped = pa.schema([*envelope, ("payload", pa.struct(envelope))])
    return {**options, "valueFormat": "json", given["valueschema"]: from_arrow_schema(wrapped).json()}


def unpacked(frame: DataFrame, source: Source) -> DataFrame:
    """A typed value's fields as columns, and beside them what is known about the record."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    about = [f.col(name).alias(alias) for name, alias in RECORD_COLUMNS.items() if name in frame.columns]
    if source.are_changes:
        return _rows_of_changes(frame, about, source)
    if source.kind is Kind.TABLE:
        about.append(f.col("value").isNull().alias(TOMBSTONE))
    is_typed = isinstance(frame.schema["value"].dataType, StructType)
    return frame.select("value.*" if is_typed else "value", *about)


def _rows_of_changes(frame: DataFrame, about: list[Column], source: Source) -> DataFrame:
    """The row after each change; before it, where it was deleted. Tombstones and messages of other kinds say no row."""
    from pyspark.sql import functions as f

    bare = f.struct(*(f.col(f"value.{name}").alias(name) for name in ("before", "after", "op", "ts_ms")))
    is_wrapped = "payload" in frame.select("value.*").columns  # a registry's envelope never is
    event = f.coalesce(f.col("value.payload"), bare) if is_wrapped else bare
    told = frame.select(event.alias("told"), *about)
    told = told.where(f.col("told.op").isin(*ROW_OPERATIONS))
    deleted = f.coalesce(f.col("told.before"), _row_of_key(frame, source))
    row = f.when(f.col("told.op") == DELETED, deleted).otherwise(f.col("told.after"))
    changed_at = f.timestamp_millis(f.col("told.ts_ms")).alias(CHANGED_AT)
    names = [name for name in told.columns if name != "told"]
    flat = told.select(row.alias("row"), f.col("told.op").alias(OPERATION), changed_at, *names)
    return flat.where("row is not null").select("row.*", OPERATION, CHANGED_AT, *names)


def _row_of_key(frame: DataFrame, source: Source) -> Column:
    """A row with the columns of the record's key alone: some databases do not say what a deleted row was."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructField, StructType

    fields = frame.select("value.before.*").schema.fields
    if isinstance(frame.schema["key"].dataType, StructType):
        there = [name for name in frame.select("key.*").columns if name in source.keys]
        return f.struct(
            *(
                (f.col("_key")[each.name] if each.name in there else f.lit(None)).cast(each.dataType).alias(each.name)
                for each in fields
            )
        )
    keys = StructType([field for field in fields if field.name in source.keys])
    wrapped = StructType([*keys.fields, StructField("payload", keys)])
    parsed = f.from_json(f.col("_key").cast("string"), wrapped)
    found = {name: f.coalesce(parsed[name], parsed["payload"][name]) for name in keys.names}
    return f.struct(*(found.get(field.name, f.lit(None)).cast(field.dataType).alias(field.name) for field in fields))


def newest_records(frame: DataFrame, source: Source) -> DataFrame:
    """What a compacted topic would keep: the last record of each key in its partition, tombstones too.

    A key that a format made may have several bytes, and partitions: of those the last in time is kept.
    """
    from pyspark.sql import functions as f

    missing = [key for key in source.keys if key not in frame.columns]
    if missing:
        there = ", ".join(name for name in frame.columns if not name.startswith("_"))
        wrong = f"table {source.name} has no column {missing[0]} to be its key; its columns by valueSchema: {there}"
        raise PipelineError(source.place, wrong)
    if are_keyed_by_bytes(frame, source):
        return _last(frame, [identity(source)], f.col("_offset"))
    # A struct is compared by its members: text of it would be another where a member is 0.0 or -0.0.
    is_keyless = f.col("_key").isNull()
    places = [f.when(is_keyless, f.col(name)) for name in ("_partition", "_offset")]
    meant = [f.struct("_topic", "_key", *places)]
    return _last(_last(frame, [*meant, f.col("_partition")], f.col("_offset")), meant, _age())


def are_keyed_by_bytes(frame: DataFrame, source: Source) -> bool:
    """Whether bytes say which record replaces which; a change event names its row itself, whatever its key is."""
    from pyspark.sql.types import BinaryType

    return source.are_changes or isinstance(frame.schema["_key"].dataType, BinaryType)


def _age() -> Column:
    from pyspark.sql import functions as f

    return f.struct("_timestamp", "_offset")


def identity(source: Source) -> Column:
    """What a later record of the same partition replaces an earlier one by, where keys are bytes.

    That is the record's key: a tombstone has no columns to know a row by. A record without a key is nobody's
    successor. A change event names its row itself, whatever its key is.
    """
    from pyspark.sql import functions as f

    if source.are_changes:
        row = f.to_json(f.struct(*map(quoted_name, source.keys)))
        return f.concat_ws("/", "_topic", "_partition", row)
    key = f.coalesce(f.concat(f.lit("key "), f.hex("_key")), f.concat(f.lit("offset "), "_offset"))
    return f.concat_ws("/", "_topic", "_partition", key)


def newest_rows(records: DataFrame, source: Source) -> DataFrame:
    """The newest row of each key among a topic's newest records; a tombstone or a deletion ends a row."""
    from pyspark.sql import functions as f

    keys, age = [f.col(quoted_name(key)) for key in source.keys], _age()
    if source.are_changes:
        return _last(records, keys, age).where(f.col(OPERATION) != DELETED)
    return _last(records.where(f"not {TOMBSTONE}").drop(TOMBSTONE), keys, age)


def _last(frame: DataFrame, by: list[Column], age: Column) -> DataFrame:
    from pyspark.sql import functions as f

    newest = f.max_by(f.struct(*map(quoted_name, frame.columns)), age).alias("newest")
    return frame.groupBy(*by).agg(newest).select("newest.*")


def _table(spark: SparkSession, endpoint: Endpoint, source: Source) -> DataFrame:
    options: dict[str, Any] = table_options(endpoint, spark)
    if endpoint.connector is Connector.FILES:
        suffix = endpoint.location.rsplit(".", 1)[-1].lower()
        kind = str(options.pop("format", suffix if suffix in FILE_FORMATS else "parquet"))
        if kind not in FILE_FORMATS:
            raise PipelineError(source.place, f"format {kind!r} is unknown; allowed: {', '.join(FILE_FORMATS)}")
        return spark.read.format(kind).options(**options).load(endpoint.location)
    where = {TABLE_OPTIONS[endpoint.connector]: endpoint.location, "readAnew": "true"}
    return spark.read.format(TABLE_FORMATS[endpoint.connector]).options(**where, **options).load()
