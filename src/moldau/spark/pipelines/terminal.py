"""What a JVM says at every start and nobody needs, kept from the terminal; everything else goes there."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

NOISE = re.compile(
    rb"^WARNING: (Using incubator modules|A terminally deprecated|A restricted method|sun\.misc|java\.lang|"
    rb"Please consider|Use --enable-native|Restricted methods)"
)
STANDARD_ERROR = 2


@contextmanager
def without_noise() -> Iterator[None]:
    """Processes that are started within write their standard error through a filter, as long as they live."""
    sys.stderr.flush()
    terminal = os.dup(STANDARD_ERROR)
    reading, writing = os.pipe()
    os.dup2(writing, STANDARD_ERROR)
    os.close(writing)
    threading.Thread(target=_pass_on, args=(reading, os.dup(terminal)), name="standard error", daemon=True).start()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(terminal, STANDARD_ERROR)
        os.close(terminal)


def _pass_on(reading: int, terminal: int) -> None:
    with os.fdopen(reading, "rb") as lines, os.fdopen(terminal, "wb", buffering=0) as output:
        for line in lines:
            if not NOISE.match(line):
                output.write(line)
