"""What a replay would read again, asked of the brokers before anything is begun."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from moldau.spark.clients.cluster import Cluster
from moldau.spark.offsets.positions import start_offsets
from moldau.spark.options import source_options
from moldau.spark.pipelines.plan import Connector, Kind, Plan
from moldau.spark.pipelines.running.frames.sources import starting_at, topic_options


class Replayed(NamedTuple):
    """A stream, and how many offsets lie between where it would begin and its end."""

    stream: str
    place: str
    records: int


def replay_of(plan: Plan, starting: Mapping[str, str]) -> Iterator[Replayed]:
    """Raises NoAnswer where a cluster gives none, and OptionError."""
    for source in plan.sources:
        if source.kind is not Kind.STREAM:
            continue
        subscribe = "subscribePattern" if source.endpoint.connector is Connector.PATTERN else "subscribe"
        said = starting_at(topic_options(source.endpoint, plan), starting, plan) | {subscribe: source.endpoint.location}
        options = source_options(said, streaming=True)
        cluster = Cluster(options.client)
        places = cluster.places(options.subscription)
        starts = start_offsets(options.starting, places, cluster, latest_if_no_timestamp=True)
        ends = cluster.latest(places)
        yield Replayed(source.name, str(source.endpoint), sum(max(0, ends[place] - starts[place]) for place in places))
