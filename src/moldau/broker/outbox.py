"""Sending replies: buffers by one gathering call, file ranges by sendfile, so stored bytes never enter this process."""

from __future__ import annotations

import os
import socket
from collections import deque
from typing import TypeAlias

from moldau.core import limits
from moldau.log.file_range import FileRange

Part: TypeAlias = "bytes | bytearray | memoryview | FileRange"

_BUFFERS_PER_CALL_MAX = 512  # Linux takes 1,024 in one call
_BUFFERS_JOINED_MAX = 64  # more are of an answer so large that its copy would take long
INLINE_BYTES_MAX = 32 * limits.KIB  # below this, one read and one gathering send beat the extra system calls


class Outbox:
    """What one connection still has to send."""

    __slots__ = ("_parts", "_socket")

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._parts: deque[Part] = deque()

    def send(self, parts: list[Part]) -> bool:
        """Send now as much as the socket takes; False when something is left for `flush`."""
        near = [part.read() if type(part) is FileRange and part.size <= INLINE_BYTES_MAX else part for part in parts]
        if self._parts or len(near) > _BUFFERS_JOINED_MAX or FileRange in map(type, near):
            self._parts.extend(near)
            return self.flush()
        whole = near[0] if len(near) == 1 else b"".join(near)  # type: ignore[arg-type]
        try:
            sent = self._socket.send(whole)  # type: ignore[arg-type]
        except BlockingIOError:
            sent = 0
        if sent == len(whole):
            return True
        self._parts.append(memoryview(whole)[sent:])  # type: ignore[arg-type]
        return False

    def flush(self) -> bool:
        """Go on sending; True when everything is gone."""
        parts = self._parts
        try:
            while parts:
                first = parts[0]
                if type(first) is FileRange:
                    self._send_file(first)
                else:
                    self._send_buffers()
        except BlockingIOError:
            return False
        return True

    def _send_file(self, part: FileRange) -> None:
        sent = os.sendfile(self._socket.fileno(), part.fd, part.position, part.size)
        if sent == 0:
            # The announced size can no longer be kept, so the stream is beyond repair.
            raise ConnectionAbortedError("a segment became shorter while it was sent")
        rest = part.after(sent)
        if len(rest):
            self._parts[0] = rest
        else:
            self._parts.popleft()

    def _send_buffers(self) -> None:
        parts = self._parts
        run: list[bytes | bytearray | memoryview] = []
        flags = 0
        for part in parts:
            if type(part) is FileRange:
                flags = socket.MSG_MORE  # the file's bytes follow at once, in the same packet
                break
            if len(run) == _BUFFERS_PER_CALL_MAX:
                break
            run.append(part)  # type: ignore[arg-type]
        sent = self._socket.sendmsg(run, (), flags)
        for buffer in run:
            if sent < len(buffer):
                parts[0] = memoryview(buffer)[sent:]
                return
            sent -= len(buffer)
            parts.popleft()
