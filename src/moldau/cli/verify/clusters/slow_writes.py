"""`python -m … start`: a broker of ours whose writes and syncs take longer while a file says so, as on a slow disk.

It is the broker as it is, in whose process `os.pwrite` and `os.fsync` wait before they do their work. The log writes by
these alone. A real device is slow for others, too, and below the page cache: this one is slow for each call.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SCRATCH = "--scratch"  # the option that names the folder of embedded brokers, which goes with them
CALLS = ("pwrite", "fsync")


def delay_file(folder: Path, pid: int) -> Path:
    """Holds milliseconds; there is none while the disk is as fast as it is."""
    return folder / f"{pid}.delay"


def delayed(call: Callable[..., Any], path: str) -> Callable[..., Any]:
    def slow(*arguments: Any) -> Any:
        try:
            with open(path) as file:
                delay_ms = int(file.read() or 0)
        except FileNotFoundError:
            return call(*arguments)
        time.sleep(delay_ms / 1_000)
        return call(*arguments)

    return slow


def main() -> int:
    folder = Path(sys.argv[sys.argv.index(SCRATCH) + 1])
    for name in CALLS:
        setattr(os, name, delayed(getattr(os, name), str(delay_file(folder, os.getpid()))))
    from importlib import import_module

    # By name: tools are no part of what a broker is made of, nor it of them.
    started: int = import_module("moldau.__main__").main()
    return started


if __name__ == "__main__":
    sys.exit(main())
