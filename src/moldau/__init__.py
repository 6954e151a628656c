"""Moldau: event streaming in Python that speaks Apache Kafka's wire protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moldau.embedded import EmbeddedBroker, run

__all__ = ["EmbeddedBroker", "run"]


def __getattr__(name: str) -> object:
    """Every start of a broker imports this package, so what only embedding needs is imported when it is asked for."""
    if name in __all__:
        from moldau import embedded

        return getattr(embedded, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
