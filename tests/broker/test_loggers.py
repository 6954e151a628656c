from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator

import pytest

from moldau.broker.loggers import LevelChange, change_levels, levels
from moldau.core.errors import ApiError, ErrorCode


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    made = logging.getLogger(f"tests.{uuid.uuid4().hex}")
    yield made
    made.setLevel(logging.NOTSET)


@pytest.mark.parametrize(
    ("python", "kafka"),
    [
        (1, "TRACE"),
        (5, "TRACE"),
        (logging.DEBUG, "DEBUG"),
        (logging.INFO, "INFO"),
        (logging.INFO + 5, "INFO"),
        (logging.WARNING, "WARN"),
        (logging.ERROR, "ERROR"),
        (logging.CRITICAL, "FATAL"),
        (99, "FATAL"),
    ],
)
def test_levels_have_kafka_s_names(logger: logging.Logger, python: int, kafka: str) -> None:
    logger.setLevel(python)
    assert levels()[logger.name] == kafka


def test_a_logger_without_a_level_has_the_one_above_it(logger: logging.Logger) -> None:
    assert levels()[logger.name] == levels()["root"]


def test_levels_are_set_and_taken_away(logger: logging.Logger) -> None:
    change_levels([LevelChange(logger.name, "TRACE")], validate_only=False)
    assert logger.level == 5
    change_levels([LevelChange(logger.name, None)], validate_only=False)
    assert logger.level == logging.NOTSET


def test_a_dry_run_changes_nothing(logger: logging.Logger) -> None:
    change_levels([LevelChange(logger.name, "TRACE")], validate_only=True)
    assert logger.level == logging.NOTSET


def test_all_or_nothing(logger: logging.Logger) -> None:
    with pytest.raises(ApiError) as raised:
        change_levels([LevelChange(logger.name, "TRACE"), LevelChange("no.such.logger", "INFO")], validate_only=False)
    assert raised.value.code is ErrorCode.INVALID_CONFIG
    assert logger.level == logging.NOTSET
