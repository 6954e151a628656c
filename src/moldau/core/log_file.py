"""The log in a file; a module of its own because a start without one must not pay for its imports."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from logging.handlers import WatchedFileHandler
from pathlib import Path


class LogFile(WatchedFileHandler):
    """A file that is opened again when logrotate, or anybody else, has moved or removed it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, encoding="utf-8", errors="backslashreplace")
        self._is_lost = False
        self._is_told = False

    def emit(self, record: logging.LogRecord) -> None:
        """Never raises: whoever logs a line is in the middle of something, and a controller would end by it."""
        self._is_lost = False
        try:
            super().emit(record)
        except OSError:  # a file that was moved, and whose directory is gone, can't be opened again
            self.handleError(record)
        self._is_told = self._is_lost

    def handleError(self, record: logging.LogRecord) -> None:
        """A full disk costs lines of the log, and one line on standard error instead of a stack trace for each."""
        wrong = sys.exc_info()[1]
        if not isinstance(wrong, OSError):
            super().handleError(record)
            return
        self._is_lost = True
        if not self._is_told:
            with suppress(OSError):
                line = f"moldau: log file {self.baseFilename}: {wrong.strerror}; lines are lost until it can be written"
                sys.stderr.write(line + "\n")
                sys.stderr.flush()
