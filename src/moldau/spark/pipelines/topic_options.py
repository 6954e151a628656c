"""What the source or the sink of a topic would refuse, found before Spark is started."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import pyarrow as pa

from moldau.client.security import ClientSettings
from moldau.spark.formats import DEFAULT_FORMAT, FormatError, Side, decoder_of, encoder_of, wants_inference
from moldau.spark.formats.interface import SideOptions
from moldau.spark.formats.schema_text import parse_schema_text
from moldau.spark.formats.type_names import struct_fields
from moldau.spark.option_values import OptionError
from moldau.spark.options import sink_options, source_options
from moldau.spark.pipelines.plan import Connector, Kind, Plan, Sink, Source
from moldau.spark.pipelines.running.frames.sources import RECORD_COLUMNS, reads_by_registry, topic_options
from moldau.spark.pipelines.xml_values import check_sink, check_source, is_xml, text_options
from moldau.spark.registry_names import uses_registry
from moldau.spark.writing.new_topics import new_topic_settings

SIDES: tuple[Side, ...] = ("key", "value")
Judge: TypeAlias = Callable[[ClientSettings, str | None], None]


def settings_by_library(client: ClientSettings, group: str | None) -> None:
    """Raises OptionError for settings that librdkafka does not know, or whose values it refuses."""
    from moldau.spark.clients.librdkafka import check_settings

    check_settings(client, group=group)


def wrong_source_option(source: Source, plan: Plan, *judges: Judge) -> str | None:
    """The first option that a read would refuse, with what is allowed."""
    options = topic_options(source.endpoint, plan)
    by_pattern = source.endpoint.connector is Connector.PATTERN
    options["subscribePattern" if by_pattern else "subscribe"] = source.endpoint.location
    try:
        if is_xml(options):
            check_source(source, options)
            options = text_options(options)
        if source.are_changes and not reads_by_registry(options):
            _check_row_of_changes(options)
            options = {**_without(options, "valueFormat"), "valueFormat": "json"}
        parsed = source_options(options, streaming=source.kind is Kind.STREAM)
        for judge in judges:
            judge(parsed.client, parsed.reading_group)
        columns = _decoded_columns(parsed.formats)
        if source.kind is Kind.TABLE and not source.are_changes:
            _check_keys(source, columns)
        if {"onError", "deadLetterTopic"} & parsed.formats.keys():
            from moldau.spark.dead_letters.rejections import rejection_rules  # needs more than a check has to wait for

            rejection_rules(parsed.formats)
    except (OptionError, FormatError) as wrong:
        return str(wrong)
    return None


def wrong_sink_option(sink: Sink, plan: Plan, *judges: Judge) -> str | None:
    """The first option that a write would refuse, with what is allowed."""
    try:
        options = {**topic_options(sink.endpoint, plan), "topic": sink.endpoint.location}
        if is_xml(options):
            check_sink(options)
            options = text_options(options)
        parsed = sink_options(options, streaming=True)
        new_topic_settings(options)
        for judge in judges:
            judge(parsed.client, None)
        for side in SIDES:
            name = parsed.formats.get(f"{side}Format", DEFAULT_FORMAT)
            encoder_of(name, parsed.formats, side=side)
            if uses_registry(name, parsed.formats):
                _check_registered(name, side, parsed.formats)
    except (OptionError, FormatError) as wrong:
        return str(wrong)
    return None


def _decoded_columns(formats: Mapping[str, str]) -> Iterable[str] | None:
    """The columns that a value becomes; None where only the topic knows them."""
    columns: Iterable[str] | None = ("value",)
    for side in SIDES:
        name = formats.get(f"{side}Format", DEFAULT_FORMAT)
        if wants_inference(name, formats, side=side):
            columns = None if side == "value" else columns
            continue
        if uses_registry(name, formats):
            _check_registered(name, side, formats)
            columns = None if side == "value" else columns
            continue
        decoded = decoder_of(name, formats, side=side).arrow_type
        if side == "value" and pa.types.is_struct(decoded):
            columns = [field.name for field in struct_fields(decoded)]
    return columns


def _check_registered(format_name: str, side: Side, formats: Mapping[str, str]) -> None:
    from moldau.spark.formats.registry.options import check_text, subject_options

    check_text(subject_options(format_name, SideOptions(side, formats)))


def _check_keys(source: Source, columns: Iterable[str] | None) -> None:
    missing = [] if columns is None else [key for key in source.keys if key not in (*columns, *RECORD_COLUMNS.values())]
    if columns is not None and missing:
        raise OptionError(f"there is no column {missing[0]} to be its key; its columns: {', '.join(columns)}")


def _check_row_of_changes(options: Mapping[str, str]) -> None:
    text = next((value for name, value in options.items() if name.lower() == "valueschema"), None)
    if text is None:
        raise OptionError("change events need valueSchema: the columns of a row")
    if not pa.types.is_struct(parse_schema_text(text, place="option valueSchema")):
        raise OptionError("option valueSchema has to be the columns of a row")


def _without(options: dict[str, str], name: str) -> dict[str, str]:
    return {key: value for key, value in options.items() if key.lower() != name.lower()}
