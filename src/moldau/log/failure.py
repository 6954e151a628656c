"""What a refusal of the disk means: to be tried again, to wait for room, or the end of a log directory's use.

A full disk and a process without descriptors leave what was written before as it was: who is refused may come again.
Anything else, and above all a failed fsync, says that the disk and this process no longer agree on what is stored. The
kernel may drop pages that it could not write and report success the next time, so only reading the files again helps.
"""

from __future__ import annotations

import errno
from enum import Enum


class SyncFailed(OSError):
    """fsync failed, for whatever reason: nobody knows what is on the disk."""


class NotUndone(OSError):
    """A change failed half way and could not be taken back: the files are not what this process takes them for."""

    @classmethod
    def after(cls, failure: OSError) -> NotUndone:
        return cls(failure.errno or errno.EIO, failure.strerror or str(failure), failure.filename)


class Verdict(Enum):
    RETRY = "retry"
    NO_ROOM = "no room"
    OFFLINE = "offline"


_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_OF_THIS_PROCESS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


def judge(failure: OSError) -> Verdict:
    if isinstance(failure, (SyncFailed, NotUndone)):
        return Verdict.OFFLINE
    if failure.errno in _NO_ROOM:
        return Verdict.NO_ROOM
    return Verdict.RETRY if failure.errno in _OF_THIS_PROCESS else Verdict.OFFLINE
