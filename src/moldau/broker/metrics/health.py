"""Whether a broker lives and serves, for probes: pure questions to its services."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moldau.broker.context import Services


@dataclass(slots=True)
class Condition:
    """Of one broker, from the start of its process on; the composition root says how far it has come."""

    broker_id: int
    services: Services | None = None
    is_serving: bool = False
    is_stopping: bool = False
    version: str = field(default="")

    def health(self) -> dict[str, Any]:
        """What is wrong with a broker that answers this at all: its loop is alive."""
        problems = [] if self.services is None else problems_of(self.services)
        return self._told("healthy" if not problems else "unhealthy", problems)

    def readiness(self) -> dict[str, Any]:
        """Whether clients should be sent here."""
        if self.is_stopping:
            return self._told("stopping", [])
        if not self.is_serving or self.services is None:
            return self._told("starting", [])
        outside = apart_from_the_cluster(self.services)
        return self._told("ready" if not outside else "fenced", outside)

    def _told(self, status: str, problems: list[dict[str, Any]]) -> dict[str, Any]:
        told: dict[str, Any] = {"status": status, "broker_id": self.broker_id}
        if self.services is not None:
            told["cluster_id"] = self.services.directories.cluster_id
        return {**told, "problems": problems} if problems else told


def problems_of(services: Services) -> list[dict[str, Any]]:
    offline = [
        {"problem": "log directory offline", "log_dir": str(path), "reason": reason}
        for path, reason in services.directories.failures.items()
    ]
    return offline + apart_from_the_cluster(services)


def apart_from_the_cluster(services: Services) -> list[dict[str, Any]]:
    """Why others may lead what this broker led; nothing where it is one of them, or alone."""
    if services.image_without_itself is not None:
        return [{"problem": "session lost", "reason": "the metadata store has lost this broker's session"}]
    image = services.controller.image
    itself = image.brokers.get(services.broker_id)
    if itself is None:
        return [{"problem": "not registered", "reason": "the cluster does not know this broker"}]
    if itself.fenced:
        return [{"problem": "fenced", "reason": "the controller has fenced this broker"}]
    return []
