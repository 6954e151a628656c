"""Levels of releases as Apache Kafka 4.3.1 has them."""

from __future__ import annotations

import pytest

from moldau.cli.failures import UsageError
from moldau.cli.kafka.feature_levels import default_level, metadata_level
from moldau.core.metadata_versions import metadata_name


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ("3.3-IV3", 7),
        ("3.5", 11),
        ("3.7", 19),
        ("3.7.1", 19),
        ("4.2-IV0", 28),
        ("4.2", 29),
        ("4.4-IV0", 31),
        (None, 30),
    ],
)
def test_a_version_has_a_level(version: str | None, level: int) -> None:
    assert metadata_level(version) == level


def test_a_release_that_is_not_in_production_has_none() -> None:
    with pytest.raises(UsageError, match=r"Unknown metadata.version '4\.4'"):
        metadata_level("4.4")


def test_features_come_with_releases() -> None:
    assert [default_level("transaction.version", each) for each in (23, 24)] == [0, 2]
    assert [default_level("group.version", each) for each in (21, 22)] == [0, 1]


def test_a_level_has_a_name() -> None:
    assert [metadata_name(each) for each in (6, 7, 31, 32)] == [None, "3.3-IV3", "4.4-IV0", None]
