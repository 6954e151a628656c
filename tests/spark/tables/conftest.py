"""Tables of every kind, each new for its test."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark.tables.sinks import KINDS, Sink, sink_of

MakeSink = Callable[[str], Sink]


@pytest.fixture
def make_sink(tmp_path: Path, request: pytest.FixtureRequest) -> MakeSink:
    def make(kind: str) -> Sink:
        url = request.getfixturevalue("postgresql_url") if kind == "postgresql" else None
        return sink_of(kind, tmp_path, name=f"orders_{uuid.uuid4().hex[:8]}", url=url)

    return make


@pytest.fixture(params=KINDS)
def sink(request: pytest.FixtureRequest, make_sink: MakeSink) -> Sink:
    return make_sink(request.param)
