"""The process as Prometheus' own client libraries tell of one, and the interpreter's garbage collection."""

from __future__ import annotations

import gc
import os
import platform
import resource
import threading
import time
from functools import partial
from pathlib import Path

from moldau.core.exposition import COUNTER, Exposition

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
STATM, STAT, BOOT, FDS = Path("/proc/self/statm"), Path("/proc/self/stat"), Path("/proc/stat"), "/proc/self/fd"
STARTED_AT = 19  # of the fields behind the process's name


def write_process(out: Exposition) -> None:
    virtual, resident = (int(each) * PAGE_BYTES for each in STATM.read_text().split()[:2])
    cpu_s = time.process_time()
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    add = partial(out.add, labels={})
    add("process_virtual_memory_bytes", "Virtual memory size in bytes.", value=virtual)
    add("process_resident_memory_bytes", "Resident memory size in bytes.", value=resident)
    add("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", value=started_s())
    add("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", value=cpu_s, kind=COUNTER)
    add("process_open_fds", "Number of open file descriptors.", value=open_descriptors())
    add("process_max_fds", "Maximum number of open file descriptors.", value=soft)
    add("process_threads", "Number of threads.", value=threading.active_count())
    _write_garbage_collection(out)


def open_descriptors() -> int:
    """Linux 6.2 tells it as a size. To list tens of thousands holds the loop for tens of milliseconds."""
    return os.stat(FDS).st_size or len(os.listdir(FDS)) - 1  # which listing opens


def _write_garbage_collection(out: Exposition) -> None:
    version = platform.python_version()
    info = {"implementation": platform.python_implementation(), "version": version}
    out.add("python_info", "Python platform information.", info, 1)
    for generation, figures in enumerate(gc.get_stats()):
        labels = {"generation": generation}
        collected, uncollectable = figures["collected"], figures["uncollectable"]
        out.add("python_gc_objects_collected_total", "Objects collected during gc.", labels, collected, COUNTER)
        help_text = "Uncollectable objects found during GC."
        out.add("python_gc_objects_uncollectable_total", help_text, labels, uncollectable, COUNTER)
        help_text = "Number of times this generation was collected."
        out.add("python_gc_collections_total", help_text, labels, figures["collections"], COUNTER)


def started_s() -> float:
    """By the kernel's clock, which does not jump with the wall clock's."""
    ticks = int(STAT.read_text().rpartition(")")[2].split()[STARTED_AT])
    boot_s = next(int(line.split()[1]) for line in BOOT.read_text().splitlines() if line.startswith("btime "))
    return boot_s + ticks / TICKS_PER_S
