"""Where the log of a broker or a service goes and in which form: one line for each record, as text or as JSON.

A module logs through `logging.getLogger(__name__)`. Figures that a program may want to read go into `extra` too:
`info("created topic %s", name, extra={"topic": name})` has a field `topic` in the JSON form.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

LogFormat = Literal["text", "json"]
LOG_FORMATS: Sequence[LogFormat] = get_args(LogFormat)
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")

LOGGER = logging.getLogger(__name__)

_STANDARD_FIELDS = {*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName"}
# A message may quote what a client sent. A line break in it must not look like a line of the log.
_ESCAPES = {code: repr(chr(code))[1:-1] for code in (*range(0x20), 0x7F, 0x85, 0x2028, 0x2029)}


def configure_logging(*, level: str, form: LogFormat, path: Path | None, broker_id: int | None = None) -> None:
    """Send every logger of this process to standard error or to a file; raises OSError if the file can't be opened.

    `broker_id` is for one of several brokers that have one log: each line says whose it is.
    """
    handler: logging.Handler = logging.StreamHandler(sys.stderr) if path is None else _file_handler(path)
    handler.setFormatter(JsonLines(broker_id) if form == "json" else TextLines(broker_id))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    threading.excepthook = _log_thread_failure


def _file_handler(path: Path) -> logging.Handler:
    from moldau.core.log_file import LogFile

    return LogFile(path)


class TimedLines(logging.Formatter):
    """Times are RFC 3339 in UTC, so that lines of several machines sort."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"


class TextLines(TimedLines):
    """`2026-01-31T12:05:00.123Z INFO moldau.node.command broker 0 started ...`, with stack traces below."""

    def __init__(self, broker_id: int | None = None) -> None:
        whose = "" if broker_id is None else f"broker {broker_id}: "
        super().__init__(f"%(asctime)s %(levelname)s %(name)s {whose}%(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = record.message.translate(_ESCAPES)
        return super().formatMessage(record)


class JsonLines(TimedLines):
    """One object a line: time, level, logger, message, the fields of `extra`, and `exception` with a stack trace."""

    def __init__(self, broker_id: int | None = None) -> None:
        super().__init__()
        self._whose = {} if broker_id is None else {"broker": broker_id}

    def format(self, record: logging.LogRecord) -> str:
        import json

        fields = {name: value for name, value in record.__dict__.items() if name not in _STANDARD_FIELDS}
        line = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **self._whose,
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps({**line, **{name: value for name, value in fields.items() if name not in line}}, default=str)


def _log_thread_failure(failure: threading.ExceptHookArgs) -> None:
    if failure.exc_value is not None:
        name = failure.thread.name if failure.thread is not None else "?"
        LOGGER.error("thread %s failed", name, exc_info=(failure.exc_type, failure.exc_value, failure.exc_traceback))
