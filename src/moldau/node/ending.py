"""The end of a broker's process, when all that it had open is closed."""

from __future__ import annotations

import logging
import os
import sys
import threading
from contextlib import suppress


def end(exit_code: int) -> int:
    """The same exit code, for a process that ends by itself; one that some thread still works in ends here.

    A fetch of keys, a login to another broker or a stop of ZooKeeper's client that hangs must not hold up a stop, so
    their threads are daemons. The exit of a process takes down what they compute with: OpenSSL frees its tables while
    such a thread reads the system's authorities, and the process dies of SIGSEGV.
    """
    others = [each for each in threading.enumerate() if each is not threading.current_thread()]
    if not others or not all(each.daemon for each in others):
        return exit_code
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # closed, or never there
            stream.flush()
    os._exit(exit_code)
