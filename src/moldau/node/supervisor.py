"""Telling systemd that the broker answers clients, or is about to end (sd_notify)."""

from __future__ import annotations

import logging
import os
import socket

LOGGER = logging.getLogger(__name__)

READY = "READY=1"
STOPPING = "STOPPING=1"


def notify_supervisor(state: str) -> None:
    """Does nothing where nobody asked for it: a service with Type=notify has NOTIFY_SOCKET."""
    path = os.environ.get("NOTIFY_SOCKET")
    if not path:
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as supervisor:
            # A name that begins with @ is not in the file system.
            supervisor.connect(f"\0{path[1:]}" if path.startswith("@") else path)
            supervisor.send(state.encode())
    except OSError as wrong:
        LOGGER.warning("NOTIFY_SOCKET %s can't be told %s: %s", path, state, wrong)
