"""What a JVM and its workers write to standard error: warnings go to the terminal, stacks and noise to the log."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOISE = re.compile(
    rb"^WARNING: (Using incubator modules|A terminally deprecated|A restricted method|sun\.misc|java\.lang|"
    rb"Please consider|Use --enable-native|Restricted methods)"
)
JAVA_STACK = re.compile(
    rb'^\s+at [\w.$/<>]+|^Exception in thread "|^Caused by: |^\s+\.\.\. \d+ (more|common)|^java\.lang\.'
)
# Each start of a query tells how many there are so far, and a project starts its queries with every update.
REJECTED = re.compile(rb"^(.+): \d+ records did not fit so far and were ")
# How Ivy resolved `spark.jars.packages`. What it downloads is told: that is what one waits for.
RESOLUTION = re.compile(
    rb"^(:: |Ivy Default Cache |The jars for the packages |[\w.-]+#[\w.-]+ added as a dependency|"
    rb"\t(confs: |found |---|\||:: |[\w.-]+#[\w.-]+;)|\t\d+ artifacts copied)"
)
PYTHON_STACK = b"Traceback (most recent call last):"
STANDARD_ERROR = 2


class Filter:
    """Tells line by line what a person should see. A Python stack ends with the line that is not indented."""

    def __init__(self) -> None:
        self._in_python_stack = False
        self._rejected: dict[bytes, bytes] = {}  # the newest line of each query

    def shows(self, line: bytes) -> bool:
        if line.startswith(PYTHON_STACK):
            self._in_python_stack = True
            return False
        if self._in_python_stack:
            self._in_python_stack = line.startswith((b" ", b"\t", b"\n"))
            return False
        rejected = REJECTED.match(line)
        if rejected:
            is_known = self._rejected.get(rejected[1]) == line
            self._rejected[rejected[1]] = line
            return not is_known
        return not any(pattern.match(line) for pattern in (NOISE, RESOLUTION, JAVA_STACK))


@contextmanager
def filtered(log: Path) -> Iterator[None]:
    """Processes that are started within write their standard error through a filter, as long as they live."""
    sys.stderr.flush()
    terminal = os.dup(STANDARD_ERROR)
    reading, writing = os.pipe()
    os.dup2(writing, STANDARD_ERROR)
    os.close(writing)
    arguments = (reading, os.dup(terminal), log)
    threading.Thread(target=_pass_on, args=arguments, name="standard error", daemon=True).start()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(terminal, STANDARD_ERROR)
        os.close(terminal)


def _pass_on(reading: int, terminal: int, log: Path) -> None:
    judge = Filter()
    with (
        os.fdopen(reading, "rb") as lines,
        os.fdopen(terminal, "wb", buffering=0) as output,
        log.open("ab", buffering=0) as kept,
    ):
        for line in lines:
            (output if judge.shows(line) else kept).write(line)
