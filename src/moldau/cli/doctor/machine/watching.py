"""Unwritten pages watched over a while, a sample each second."""

from __future__ import annotations

import time
from collections.abc import Callable

from moldau.cli.doctor.machine.facts import DirtyPages
from moldau.cli.doctor.machine.gathering import Sample, dirty_pages, sample
from moldau.cli.doctor.machine.system_files import SystemFiles
from moldau.cli.units import size_text

PAUSE_S = 1.0


def watch_dirty_pages(
    files: SystemFiles, duration_s: float, *, tell: Callable[[str], None], pause_s: float = PAUSE_S
) -> DirtyPages | None:
    """Ctrl-C ends it early, with what was seen until then."""
    samples: list[Sample] = []
    began_s = time.monotonic()
    try:
        while True:
            samples.append(sample(files))
            passed_s = time.monotonic() - began_s
            seen = dirty_pages(samples)
            if seen is None:
                return None
            tell(
                f"watching unwritten pages: {min(passed_s, duration_s):.0f} of {duration_s:.0f} s,"
                f" {size_text(seen.dirty[-1])} dirty, peak {size_text(seen.peak_bytes)}"
            )
            if passed_s >= duration_s:
                return seen
            time.sleep(min(pause_s, duration_s - passed_s))
    except KeyboardInterrupt:
        return dirty_pages(samples)
