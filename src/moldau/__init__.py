"""Moldau: event streaming in Python that speaks Apache Kafka's wire protocol."""

from __future__ import annotations

TYPE_CHECKING = False  # a name that type checkers know: importing typing takes a tenth of what a tool's --help does

__all__ = [
    "Address",
    "BrokerFailed",
    "ClientSettings",
    "EmbeddedBroker",
    "EmbeddedCluster",
    "RequestFailed",
    "__version__",
    "run",
]

if TYPE_CHECKING:
    from moldau.embedded import (
        Address,
        BrokerFailed,
        ClientSettings,
        EmbeddedBroker,
        EmbeddedCluster,
        RequestFailed,
        run,
    )

    __version__: str
else:
    # Every start of a broker imports this package, so what only embedding needs is imported when it is asked for. Type
    # checkers must not see this: a module with `__getattr__` has any name for them.
    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version

            return version(__name__)
        if name in __all__:
            from moldau import embedded

            return getattr(embedded, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
