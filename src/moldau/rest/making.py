"""A proxy of its settings, with a registry where one is named."""

from __future__ import annotations

from moldau.rest.consuming.rendering import NoSchemas
from moldau.rest.producing.schemas import NoRegistry, RegistryValues
from moldau.rest.proxy import Proxy
from moldau.rest.settings import RestSettings
from moldau.rest.threads import Threads
from moldau.schemas.registry_client import RegistryClient


def made_proxy(settings: RestSettings) -> Proxy:
    threads = Threads(consuming=settings.consumer_threads, streaming=settings.streams_max)
    if settings.registry_url is None:
        return Proxy(settings, threads, NoRegistry(), NoSchemas())
    values = RegistryValues(registry_client(settings), threads)
    return Proxy(settings, threads, values, values)


def registry_client(settings: RestSettings) -> RegistryClient:
    """Raises ValueError."""
    return RegistryClient({**settings.registry, "schema.registry.url": settings.registry_url})
