"""The groups that a pipeline's queries commit their offsets to: what shows how far they are when they do not run."""

from __future__ import annotations

from typing import NamedTuple

from moldau.client.security import ClientSettings
from moldau.spark.offsets.progress import group_of
from moldau.spark.options import source_options
from moldau.spark.pipelines.plan import Connector, Plan
from moldau.spark.pipelines.running.frames.sources import topic_options
from moldau.spark.pipelines.running.reports.rejected import streams_of


class ReaderGroup(NamedTuple):
    client: ClientSettings
    group: str


def reader_groups(plan: Plan) -> list[ReaderGroup]:
    """In the order of the plan's sinks, each once."""
    found: dict[ReaderGroup, None] = {}
    for sink in plan.sinks:
        for source in streams_of(sink.query, plan):
            subscribe = "subscribePattern" if source.endpoint.connector is Connector.PATTERN else "subscribe"
            said = topic_options(source.endpoint, plan) | {subscribe: source.endpoint.location}
            options = source_options(said, streaming=True)
            own = group_of(options.group_prefix, options.query_name or f"{plan.name}.{sink.name}")
            if options.commits_offsets:
                found[ReaderGroup(options.client, options.group_id or own)] = None
    return list(found)
