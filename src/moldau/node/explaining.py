"""A failure of the system in one line for whoever started a broker, with what to do about it."""

from __future__ import annotations

import errno
import os
import socket

MORE_DESCRIPTORS = "raise the limit (ulimit -n, or LimitNOFILE= of a service)"


def explain(wrong: OSError) -> str:
    where = f": {wrong.filename}" if wrong.filename is not None else ""
    sentence = f"{wrong.strerror or wrong}{where}"
    advice = advise(wrong, is_listener="://" in str(wrong.filename))
    return f"{sentence}; {advice}" if advice is not None else sentence


def advise(wrong: OSError, *, is_listener: bool) -> str | None:
    """What to do about a failure that only the user can mend."""
    option = "--metrics" if str(wrong.filename).startswith("http://") else "--port"
    if wrong.errno == errno.EADDRINUSE:
        return f"another program listens there, choose a different port with {option}"
    if wrong.errno in (errno.EMFILE, errno.ENFILE):
        return MORE_DESCRIPTORS
    if wrong.errno == errno.ENOENT and is_here_gone():
        return "the current directory was deleted, change to another one or name a whole path with --data-dir"
    if not is_listener:
        refusals = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR)
        return "choose a directory that this user may write to with --data-dir" if wrong.errno in refusals else None
    if wrong.errno == errno.EACCES:
        return f"this user may not listen there, choose a port above 1023 with {option}"
    if wrong.errno == errno.EADDRNOTAVAIL or isinstance(wrong, socket.gaierror):
        return f"choose an address of this machine with {'--host' if option == '--port' else option}"
    return None


def is_here_gone() -> bool:
    try:
        return not os.getcwd()
    except FileNotFoundError:
        return True
