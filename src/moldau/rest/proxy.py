"""The proxy: who asks, what is open for whom, and what of it shows in metrics."""

from __future__ import annotations

import asyncio

from starlette.requests import Request

from moldau.core.exposition import COUNTER, Exposition
from moldau.rest.consuming.instances import Instances
from moldau.rest.consuming.rendering import SchemaReader
from moldau.rest.producing.values import SchemaWriter
from moldau.rest.readiness import Readiness
from moldau.rest.sessions import ANONYMOUS, Session, Sessions
from moldau.rest.settings import Authentication, RestSettings
from moldau.rest.threads import Threads
from moldau.rest.v3.events import Streams
from moldau.web.authentication import login_of


class Proxy:
    """Made on the event loop; `close` ends all that is open."""

    def __init__(self, settings: RestSettings, threads: Threads, schemas: SchemaWriter, reader: SchemaReader) -> None:
        self.settings = settings
        self.threads = threads
        self.schemas = schemas
        self.schema_reader = reader
        self.sessions = Sessions(settings, threads)
        self.readiness = Readiness(settings)
        self.instances = Instances(settings, threads)
        self.streams = Streams(settings.streams_max, settings.streams_per_user_max)
        self.ending = asyncio.Event()
        """Set before the server waits for its requests: streams have no end of their own."""
        self._sweeping = asyncio.get_running_loop().create_task(self.instances.sweep())

    async def session_of(self, request: Request) -> Session:
        """401 if somebody has to say who he is, and did not."""
        if self.settings.authentication is not Authentication.PASSTHROUGH:
            principal = str(login_of(request).principal)
            is_known = self.settings.authentication is Authentication.BASIC
            return self.sessions.own(principal if is_known else ANONYMOUS)
        return await self.sessions.of_request(request)

    def expose(self, found: Exposition) -> None:
        found.add("moldau_rest_consumer_instances", "Consumer instances", {}, len(self.instances))
        text = "Consumer instances that nobody asked for long"
        found.add("moldau_rest_consumer_instances_expired_total", text, {}, self.instances.expired, COUNTER)
        found.add("moldau_rest_streams", "Streams of records that clients read", {}, len(self.streams))

    async def close(self) -> None:
        self._sweeping.cancel()
        await self.instances.close()
        self.sessions.close()
        self.readiness.close()
        self.threads.close()
