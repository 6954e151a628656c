"""How many clients of a listener proved who they are, and how many did not, since the start."""

from __future__ import annotations

from typing import Final

from moldau.core.limits import METRICS_CLIENT_ID_BYTES_MAX
from moldau.core.text import cut

OTHER: Final = "(other)"
FAILED_IDS_MAX: Final = 200  # of clients whose failed logins are told apart: strangers say what they like


class Authentications:
    __slots__ = ("failed", "failed_by_client", "succeeded")

    def __init__(self) -> None:
        self.succeeded = self.failed = 0
        self.failed_by_client: dict[str, int] = {}
        """Failed logins by what the clients call themselves, "" of those that sent no name."""

    def fail_login(self, client_id: str | None) -> None:
        self.failed += 1
        by_client = self.failed_by_client
        key = cut(client_id or "", METRICS_CLIENT_ID_BYTES_MAX)
        if key not in by_client and len(by_client) >= FAILED_IDS_MAX:
            key = OTHER
        by_client[key] = by_client.get(key, 0) + 1
