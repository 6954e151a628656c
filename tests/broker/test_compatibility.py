from __future__ import annotations

from pathlib import Path

from moldau.broker.compatibility import KAFKA_VERSIONS, NOTES, render
from moldau.broker.handlers.api_versions import announced
from moldau.broker.handlers.table import TABLE
from moldau.broker.handlers.telemetry import TELEMETRY

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"


def test_the_page_is_what_the_handlers_say() -> None:
    assert PAGE.read_text() == render(TABLE + TELEMETRY), "docs/compatibility.md is stale: run scripts/compatibility"


def test_nothing_is_announced_that_apache_kafka_does_not_know() -> None:
    for api in announced(TABLE + TELEMETRY):
        oldest, newest = KAFKA_VERSIONS[next(key for key in KAFKA_VERSIONS if key == api.api_key)]
        assert oldest <= api.min_version <= api.max_version <= newest


def test_notes_are_about_what_is_answered() -> None:
    assert NOTES.keys() <= {row.key for row in TABLE + TELEMETRY}
