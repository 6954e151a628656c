"""What the log answers when it cannot do what a peer asked."""

from __future__ import annotations

from moldau.core.errors import ApiError, ErrorCode


class LogError(ApiError):
    """A refused append or read. `record_errors` names the batch index and the fault of each record to blame."""

    def __init__(
        self, code: ErrorCode, message: str | None = None, record_errors: tuple[tuple[int, str], ...] = ()
    ) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors
