"""XML in topics: text to the source and to the sink, parsed and written by Spark's own functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from moldau.spark.formats.interface import FormatError
from moldau.spark.formats.schema_text import parse_schema_text
from moldau.spark.formats.type_names import struct_fields
from moldau.spark.option_values import OptionError, wrong_option
from moldau.spark.pipelines.plan import Connector, Endpoint, Expectation, Kind, Plan, Source, Violation

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NAME = "xml"
PREFIX = "xml."  # of options for Spark's functions: xml.rowTag, xml.attributePrefix, xml.timestampFormat …
MALFORMED = "malformed"  # the column with the text of a record that does not fit, null for all others
RULE = "readable"
OWN = ("valueformat", "valueschema", "onerror")
# What `onError` says of a source, as an expectation of its rows: Spark's functions refuse no record by themselves.
VIOLATIONS = {"fail": Violation.FAIL, "skip": Violation.DROP, "deadletter": Violation.DEAD_LETTER}
OF_FUNCTIONS = ("mode", "columnNameOfCorruptRecord")


def is_xml(options: Mapping[str, str]) -> bool:
    return _lowered(options).get("valueformat", "").strip().lower() == NAME


def text_options(options: Mapping[str, str]) -> dict[str, str]:
    """For the source or the sink of the topic, which see text."""
    rest = {key: value for key, value in options.items() if key.lower() not in OWN and not _is_ours(key)}
    return {**rest, "valueFormat": "string"}


def check_source(source: Source, options: Mapping[str, str]) -> None:
    """Raises FormatError and OptionError. Who reads by `parsed` has checked before."""
    said = _lowered(options)
    if source.kind is Kind.TABLE:
        raise FormatError("valueFormat = xml is for streams; write the stream into a topic of json or avro for a table")
    if source.are_changes:
        raise FormatError("valueFormat = xml: change events come as json or avro")
    if "valueschema" not in said:
        raise FormatError("option valueSchema is missing: valueFormat=xml needs a schema here")
    if not pa.types.is_struct(parse_schema_text(said["valueschema"], place="option valueSchema")):
        raise FormatError("option valueSchema: with valueFormat=xml it has to be columns")
    if said.get("onerror", "fail").lower() not in VIOLATIONS:
        raise wrong_option("onError", said["onerror"], f"allowed is one of {', '.join(VIOLATIONS)}")
    if "deadlettertopic" in said:
        raise OptionError("option deadLetterTopic: with valueFormat=xml letters go where those of expectations go")
    _function_options(options)


def check_sink(options: Mapping[str, str]) -> None:
    _function_options(options)


def parsed(frame: DataFrame, options: Mapping[str, str]) -> DataFrame:
    """The frame of `text_options`, its value in columns, and beside it the text of what does not fit."""
    from pyspark.sql import functions as f
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StringType

    schema = parse_schema_text(_lowered(options)["valueschema"], place="option valueSchema")
    corrupt = f"_{MALFORMED}"
    columns = from_arrow_schema(pa.schema(struct_fields(schema))).add(corrupt, StringType())
    told = {**_function_options(options), "mode": "PERMISSIVE", "columnNameOfCorruptRecord": corrupt}
    value = f.from_xml("value", columns, told)
    read = frame.withColumn("value", value).withColumn(MALFORMED, f.col("value")[corrupt])
    return read.withColumn("value", f.col("value").dropFields(corrupt))


def written(value: Column, options: Mapping[str, str]) -> Column:
    """One record, on one line unless `xml.indent` says otherwise."""
    from pyspark.sql import functions as f

    text = f.to_xml(value, {"indent": "", **_function_options(options)})
    return f.rtrim(text, f.lit("\n"))


def with_rules(plan: Plan) -> Plan:
    """What becomes of records that don't fit, as expectations of the streams of XML."""
    rules = {source.name: _rule(source) for source in plan.sources if _reads_xml(source)}
    sources = (replace(one, endpoint=_without_rule(one.endpoint)) if one.name in rules else one for one in plan.sources)
    found = (rule for rule in rules.values() if rule is not None)
    return replace(plan, sources=tuple(sources), expectations=(*found, *plan.expectations))


def _rule(source: Source) -> Expectation | None:
    """None where `check_source` has something to say."""
    otherwise = VIOLATIONS.get(_lowered(source.endpoint.options).get("onerror", "fail").lower())
    return otherwise and Expectation(RULE, source.name, f"_{MALFORMED} is null", otherwise, source.place)


def _without_rule(endpoint: Endpoint) -> Endpoint:
    """The expectation says it from here on: to the source itself every text fits."""
    kept = {
        key: value
        for key, value in endpoint.options.items()
        if key.lower() != "onerror" or value.lower() not in VIOLATIONS
    }
    return replace(endpoint, options=kept)


def _reads_xml(source: Source) -> bool:
    is_topic = source.endpoint.connector in (Connector.TOPIC, Connector.PATTERN)
    return is_topic and source.kind is Kind.STREAM and is_xml(source.endpoint.options)


def _function_options(options: Mapping[str, str]) -> dict[str, str]:
    found = {key[len(PREFIX) :]: value for key, value in options.items() if _is_ours(key)}
    for name in found:
        if name.lower() in map(str.lower, OF_FUNCTIONS):
            raise OptionError(f"option {PREFIX}{name} is not set here: onError says what becomes of what does not fit")
    return found


def _is_ours(key: str) -> bool:
    return key.lower().startswith(PREFIX)


def _lowered(options: Mapping[str, str]) -> dict[str, str]:
    return {key.lower(): value for key, value in options.items()}
