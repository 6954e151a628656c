"""The log in a file; a module of its own because a start without one must not pay for its imports."""

from __future__ import annotations

import logging
import sys
from logging.handlers import WatchedFileHandler
from pathlib import Path


class LogFile(WatchedFileHandler):
    """A file that is opened again when logrotate, or anybody else, has moved or removed it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, encoding="utf-8", errors="backslashreplace")

    def handleError(self, record: logging.LogRecord) -> None:
        """A full disk costs lines of the log, not a stack trace for each of them on standard error."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)
