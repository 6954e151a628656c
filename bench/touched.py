"""Run a measurement on memory that the machine really has, rather than on what its host has yet to find.

    python -m bench.touched -- ../shared/bench/saturate

A virtual machine often gets its memory page by page, each when it is first touched, and gives back what was free for
some seconds. A log that grows then waits for the host with every page: 250 to 450 us for 128 KB, four times what all
the rest of a Produce takes, whichever broker writes it. Here most of the free memory is touched once, and all but one
page of each mebibyte freed again, so that the kernel has no block whole enough to be given back while the command runs.
"""

from __future__ import annotations

import argparse
import mmap
import subprocess
import sys
import time

from bench.stalls import say

MIB = 1 << 20
LEFT_BYTES = 3 << 30  # for everybody else while the rest is taken


def available_bytes() -> int:
    with open("/proc/meminfo", encoding="ascii") as file:
        (line,) = [line for line in file if line.startswith("MemAvailable:")]
    return int(line.split()[1]) * 1024


def hold(size: int) -> mmap.mmap:
    """Memory of which each mebibyte was touched, and has one page left."""
    held = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, size, mmap.PAGESIZE):
        held[at] = 1
    for at in range(0, size, MIB):
        held.madvise(mmap.MADV_DONTNEED, at + mmap.PAGESIZE, MIB - mmap.PAGESIZE)
    return held


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=float, help="how much to touch; unless told, all that is free but 3 GiB")
    parser.add_argument("command", nargs="+", help="what to run, after --")
    given = parser.parse_args()
    size = int(given.gib * 1024) * MIB if given.gib is not None else max(0, available_bytes() - LEFT_BYTES) // MIB * MIB
    if size <= 0:
        parser.error("there is too little free memory; say how much to touch by --gib")
    say(f"touching {size / (1 << 30):.1f} GiB")
    begun_s = time.monotonic()
    held = hold(size)
    say(f"touched in {time.monotonic() - begun_s:.0f} s")
    try:
        return subprocess.run(given.command, check=False).returncode
    finally:
        held.close()


if __name__ == "__main__":
    sys.exit(main())
