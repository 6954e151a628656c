"""The levels of this process's loggers, under the names that Kafka's tools know."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from moldau.core.errors import ApiError, ErrorCode

ROOT = "root"


class Level(IntEnum):
    TRACE = 5
    DEBUG = logging.DEBUG
    INFO = logging.INFO
    WARN = logging.WARNING
    ERROR = logging.ERROR
    FATAL = logging.CRITICAL


class LevelChange(NamedTuple):
    logger: str
    level: str | None
    """None: the level of the logger above it."""


def levels() -> dict[str, str]:
    """Every logger that somebody has used, with the level that is in force for it."""
    known = logging.root.manager.loggerDict
    names = sorted(name for name, found in known.items() if isinstance(found, logging.Logger))
    return {ROOT: _name_of(logging.root.level)} | {
        name: _name_of(logging.getLogger(name).getEffectiveLevel()) for name in names
    }


def change_levels(changes: Iterable[LevelChange], *, validate_only: bool) -> None:
    """All changes or, when one of them is wrong, none."""
    changes = list(changes)
    known = levels()
    for change in changes:
        _check(change, known)
    if not validate_only:
        for change in changes:
            logger = logging.root if change.logger == ROOT else logging.getLogger(change.logger)
            logger.setLevel(logging.NOTSET if change.level is None else Level[change.level])


def _check(change: LevelChange, known: dict[str, str]) -> None:
    if change.logger not in known:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"Logger {change.logger} does not exist!")
    if change.level is None and change.logger == ROOT:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed")
    if change.level is not None and change.level not in Level.__members__:
        allowed = ", ".join(sorted(Level.__members__))
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {change.logger} to {change.level} as it is not a supported log level. "
            f"Valid log levels are {allowed}",
        )


def _name_of(level: int) -> str:
    """The closest level of Kafka's that lets at least as much through."""
    return next((each.name for each in reversed(Level) if each <= level), Level.TRACE.name)
