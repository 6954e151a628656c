"""Whether this machine's clock is kept by somebody: the kernel knows, and so do chrony and systemd-timesyncd."""

from __future__ import annotations

import ctypes
import os

from moldau.cli.doctor.machine.facts import ClockState
from moldau.cli.doctor.machine.system_files import SystemFiles

STA_UNSYNC = 0x0040
UNSYNCHRONISED = 5  # what adjtimex answers then
TIMESYNCD = "/run/systemd/timesync/synchronized"


class _Timex(ctypes.Structure):
    """The part of `struct timex` that is read, and room for the rest of it."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_char * 256),
    )


def clock_state(files: SystemFiles) -> ClockState:
    kernel = _kernel()
    if kernel is not None and kernel.is_synchronised:
        return kernel
    # timesyncd sets the clock without telling the kernel that it is right.
    if files.exists(TIMESYNCD):
        return ClockState(True, "systemd-timesyncd")
    return kernel or ClockState(None, "nobody")


def _kernel() -> ClockState | None:
    if os.name != "posix":
        return None
    asked = _Timex()  # no mode: nothing is changed, so that everybody may ask
    try:
        answer = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(asked))
    except (OSError, AttributeError):
        return None
    if answer < 0:
        return None
    is_off = answer == UNSYNCHRONISED or bool(asked.status & STA_UNSYNC)
    return ClockState(not is_off, "the kernel", None if is_off else asked.maxerror / 1_000)
