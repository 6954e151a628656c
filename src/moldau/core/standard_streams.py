"""Standard streams that whoever started us has closed."""

from __future__ import annotations

import os

STDERR_FD = 2


def occupy_standard_streams() -> None:
    """Where stdin, stdout or stderr is closed, nothing that we open may get its number, and what is printed there."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= STDERR_FD:
        pass
    os.close(fd)
