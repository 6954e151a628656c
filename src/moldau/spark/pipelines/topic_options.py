"""What the source or the sink of a topic would refuse, found before Spark is started."""

from __future__ import annotations

from moldau.spark.formats import DEFAULT_FORMAT, FormatError, Side, decoder_of, encoder_of, wants_inference
from moldau.spark.option_values import OptionError
from moldau.spark.options import sink_options, source_options
from moldau.spark.pipelines.plan import Connector, Kind, Plan, Sink, Source
from moldau.spark.pipelines.running.frames.sources import topic_options
from moldau.spark.writing.new_topics import new_topic_settings

SIDES: tuple[Side, ...] = ("key", "value")


def wrong_source_option(source: Source, plan: Plan) -> str | None:
    """The first option that a read would refuse, with what is allowed."""
    options = topic_options(source.endpoint, plan)
    by_pattern = source.endpoint.connector is Connector.PATTERN
    options["subscribePattern" if by_pattern else "subscribe"] = source.endpoint.location
    if source.are_changes:
        options = {**_without(options, "valueFormat"), "valueFormat": "json"}
    try:
        formats = source_options(options, streaming=source.kind is Kind.STREAM).formats
        for side in SIDES:
            name = formats.get(f"{side}Format", DEFAULT_FORMAT)
            if not wants_inference(name, formats, side=side):
                decoder_of(name, formats, side=side)
        if {"onError", "deadLetterTopic"} & formats.keys():
            from moldau.spark.dead_letters.rejections import rejection_rules  # needs more than a check has to wait for

            rejection_rules(formats)
    except (OptionError, FormatError) as wrong:
        return str(wrong)
    return None


def wrong_sink_option(sink: Sink, plan: Plan) -> str | None:
    """The first option that a write would refuse, with what is allowed."""
    try:
        options = {**topic_options(sink.endpoint, plan), "topic": sink.endpoint.location}
        formats = sink_options(options, streaming=True).formats
        new_topic_settings(options)
        for side in SIDES:
            encoder_of(formats.get(f"{side}Format", DEFAULT_FORMAT), formats, side=side)
    except (OptionError, FormatError) as wrong:
        return str(wrong)
    return None


def _without(options: dict[str, str], name: str) -> dict[str, str]:
    return {key: value for key, value in options.items() if key.lower() != name.lower()}
