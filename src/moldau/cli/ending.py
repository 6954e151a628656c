"""SIGTERM and SIGHUP end a tool as Ctrl-C does: what it holds open in a cluster is closed first.

Without that a group would wait for a member that is gone, what was printed would not be committed, and a transaction
would hold its topics' readers back until the broker gives it up.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

SIGNALS = (signal.SIGTERM, signal.SIGHUP)
SHELL_BASE = 128  # shells count what ended by a signal from here


class Terminated(KeyboardInterrupt):
    """Whatever cleans up after Ctrl-C does it here, too."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code = SHELL_BASE + number


def _terminate(number: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated(number)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """A signal that is ignored stays so: `nohup` wants that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = [each for each in SIGNALS if signal.getsignal(each) is signal.SIG_DFL]
    for each in heard:
        signal.signal(each, _terminate)
    try:
        yield
    finally:
        for each in heard:
            signal.signal(each, signal.SIG_DFL)
