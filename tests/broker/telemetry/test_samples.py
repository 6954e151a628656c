"""How much of a push is made out, whatever is in it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from moldau.broker.telemetry import samples
from moldau.broker.telemetry.samples import samples_of
from moldau.core.limits import TELEMETRY_SERIES_PER_CLIENT_MAX
from moldau.telemetry.naming import metric_name, rendered
from tests.broker.telemetry.clients import client
from tests.telemetry.metrics import attribute

POINTS = 10_000


@pytest.mark.parametrize(
    ("resource", "name", "made_out"),
    [
        ({f"k{each}": "v" for each in range(27)}, "h", TELEMETRY_SERIES_PER_CLIENT_MAX),
        ({"k": "v" * 700_000}, "h", 0),
        ({}, "n" * 700_000, 0),
    ],
    ids=["many labels", "a long label", "a long name"],
)
def test_points_that_have_no_room_are_not_made_out(
    resource: dict[str, str], name: str, made_out: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """100,000 of them, which 200 KB hold and a codec makes some hundred bytes, took a thread five seconds."""
    labelled, named = [], []

    def shown(labels: Mapping[str, str]) -> str:
        labelled.append(labels)
        return rendered(labels)

    def full_name(name: str, unit: str, *, is_counter: bool) -> str:
        named.append(name)
        return metric_name(name, unit, is_counter=is_counter)

    monkeypatch.setattr(samples, "rendered", shown)
    monkeypatch.setattr(samples, "metric_name", full_name)
    data = MetricsData()
    made = data.resource_metrics.add()
    made.resource.attributes.extend(attribute(*each) for each in resource.items())
    points = made.scope_metrics.add().metrics.add(name=name).gauge.data_points
    for _ in range(POINTS):
        points.add(flags=0, as_int=0)
    found = samples_of(client(), data.SerializeToString())
    assert (len(found.found), found.left_out) == (made_out, POINTS - made_out)
    assert (len(labelled), len(named)) == (made_out, made_out)
