"""A server that another program owns: it tells where it answers by a file, and ends when its standard input does."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path


def end_with_input(loop: asyncio.AbstractEventLoop, end: Callable[[], None]) -> None:
    def watch() -> None:
        # Not by sys.stdin, whose lock a thread that reads would hold at the interpreter's end.
        while os.read(sys.stdin.fileno(), 4_096):
            pass
        if not loop.is_closed():
            loop.call_soon_threadsafe(end)

    threading.Thread(target=watch, name="input", daemon=True).start()


def tell_ready(path: Path, **facts: object) -> None:
    """Whole, or not at all: whoever waits for the file reads it as soon as it is there."""
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps({**facts, "pid": os.getpid()}))
    draft.replace(path)
