"""Sending replies: buffers by one gathering call, file ranges by sendfile, so stored bytes never enter this process."""

from __future__ import annotations

import errno
import os
import socket
from collections import deque
from typing import TypeAlias

from moldau.core import limits
from moldau.log.file_range import FileRange

Part: TypeAlias = "bytes | bytearray | memoryview | FileRange"

_BUFFERS_PER_CALL_MAX = 512  # Linux takes 1,024 in one call
_BYTES_PER_TURN_MAX = 4 * limits.MIB  # the kernel copies so many in two to four milliseconds
_BUFFERS_JOINED_MAX = 64  # more, or a long one among them, are of an answer whose copy would take long
_BYTES_JOINED_MAX = 128 * limits.KIB
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
        is_large = len(near) > 1 and (len(near) > _BUFFERS_JOINED_MAX or max(map(len, near)) > _BYTES_JOINED_MAX)
        if self._parts or is_large or FileRange in map(type, near):
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
        """Go on sending; True when everything is gone. A peer that reads as fast gets no more than a share at once."""
        parts = self._parts
        left = _BYTES_PER_TURN_MAX
        try:
            while parts:
                if left <= 0:
                    return False
                first = parts[0]
                left -= self._send_file(first) if type(first) is FileRange else self._send_buffers()
        except BlockingIOError:
            return False
        return True

    def _send_file(self, part: FileRange) -> int:
        part.check()
        sent = os.sendfile(self._socket.fileno(), part.fd, part.position, part.size)
        if sent == 0:
            # The announced size can no longer be kept, so the stream is beyond repair.
            raise OSError(errno.EIO, "a segment became shorter while it was sent")
        rest = part.after(sent)
        if len(rest):
            self._parts[0] = rest
        else:
            self._parts.popleft()
        return sent

    def _send_buffers(self) -> int:
        parts = self._parts
        run: list[bytes | bytearray | memoryview] = []
        flags = size = 0
        for part in parts:
            if type(part) is FileRange:
                flags = socket.MSG_MORE  # the file's bytes follow at once, in the same packet
                break
            if len(run) == _BUFFERS_PER_CALL_MAX or size >= _BYTES_PER_TURN_MAX:
                break
            run.append(part)  # type: ignore[arg-type]
            size += len(part)
        sent = gone = self._socket.sendmsg(run, (), flags)
        for buffer in run:
            if sent < len(buffer):
                parts[0] = memoryview(buffer)[sent:]
                break
            sent -= len(buffer)
            parts.popleft()
        return gone
