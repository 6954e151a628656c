"""What all endpoints need: the registry, whose name a subject is, who may do what, the way to the leader."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from moldau.registry import refusals
from moldau.registry.checking import source_of
from moldau.registry.forwarding import FORWARDED, OFFSET, TOPIC, Forwarder, Question
from moldau.registry.names import checked, normalized
from moldau.registry.records import StoredSchema
from moldau.registry.rights import READ, OfLogins, Right, Rights
from moldau.registry.service import Registry
from moldau.registry.serving.table import Endpoint
from moldau.registry.state import State
from moldau.registry.storing.electing import Identity
from moldau.web.authentication import forbidden
from moldau.web.negotiation import JSON, REGISTRY, answer_type, body_type
from moldau.web.requests import body_bytes, encoded, path_value

OFFERED = (REGISTRY, "application/vnd.schemaregistry+json", JSON)
ACCEPTED = frozenset({*OFFERED, "application/octet-stream"})
PLAIN = "text/plain"
RESOLVED = "resolved"
ATTEMPTS = 3
PAUSE_S = 0.5
NO_LEADER = b'"error_code":50004'


@dataclass(slots=True)
class Api:
    registry: Registry
    forwarder: Forwarder = field(default_factory=Forwarder)
    cluster_id: str = ""
    rights: Rights = field(default_factory=OfLogins)

    @property
    def state(self) -> State:
        return self.registry.state

    async def respond(self, endpoint: Endpoint, request: Request) -> Response:
        request.state.media_type = answer_type(request, OFFERED)
        if endpoint.body is not None:
            body_type(request, ACCEPTED, JSON)
        if endpoint.is_written:
            return await self._by_leader(endpoint, request)
        return await self._here(endpoint, request)

    async def _here(self, endpoint: Endpoint, request: Request) -> Response:
        value = await endpoint.answer(request)
        if value is NOTHING:
            return Response(status_code=204)
        content = value.text.encode("utf-8", "replace") if isinstance(value, RawText) else encoded(value)
        headers = {OFFSET: str(self.registry.offset)} if endpoint.is_written else None
        return Response(content, media_type=request.state.media_type, headers=headers)

    async def _by_leader(self, endpoint: Endpoint, request: Request) -> Response:
        is_forwarded = self._is_forwarded(request)
        lost, deadline_s = 0, time.monotonic() + self.registry.settings.election_s
        while lost < ATTEMPTS:
            if self.registry.is_leading:
                return await self._here(endpoint, request)
            if is_forwarded:
                raise refusals.no_leader()
            leader = await self.registry.wait_for_leader()
            if self.registry.is_leading:
                continue
            question = await self._question(request)
            answer = await self.forwarder.ask(leader, question, self.registry.wait_for_another_leader(leader))
            if answer is None:
                if request.method == "DELETE":
                    raise refusals.not_forwarded(f"The leader {leader.url} was lost while it was asked")
                lost += 1
                continue  # whatever it did, doing it again changes nothing
            if answer.status == 500 and NO_LEADER in answer.body.replace(b" ", b""):
                if time.monotonic() >= deadline_s:
                    break
                await self._pause(leader)
                continue  # it was one a moment ago, or is about to be, and did nothing
            if answer.offset is not None:
                await self.registry.wait_for(answer.offset)
            return Response(answer.body, answer.status, media_type=answer.content_type)
        raise refusals.no_leader()

    async def _question(self, request: Request) -> Question:
        target = request.scope["path"] + (f"?{request.url.query}" if request.url.query else "")
        body, topic = await body_bytes(request), self.registry.settings.topic
        return Question(request.method, target, dict(request.headers), body, topic)

    async def _pause(self, leader: Identity) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(PAUSE_S):
                await self.registry.wait_for_another_leader(leader)

    def _is_forwarded(self, request: Request) -> bool:
        """Raises 50003. Two registries of one cluster that were given one group would write to the leader's topic."""
        if request.headers.get(FORWARDED, "").lower() != "true":
            return False
        settings = self.registry.settings
        asked = request.headers.get(TOPIC, settings.topic)
        if asked != settings.topic:
            raise refusals.not_forwarded(
                f"The leader of the group {settings.group!r} keeps schemas in the topic {settings.topic!r}, and this "
                f"instance in {asked!r}: give each registry a schema.registry.group.id of its own"
            )
        return True

    async def require(self, request: Request, right: Right, *subjects: str) -> None:
        """Raises 403. An empty name stands for what is nobody's, such as the configuration for all."""
        may = await self.rights.judged(request, right, subjects)
        if not all(may(each) for each in subjects):
            raise forbidden()

    async def subject(self, request: Request, right: Right, *, has_settings: bool = False) -> str:
        """Of the path, if its user may do this there. Raises 42208 or 403."""
        subject = checked(path_value(request, "subject"), has_settings=has_settings)
        await self.require(request, right, subject)
        return subject

    async def read_subject(self, request: Request) -> str:
        """The one that another name stands for, if the configuration says so."""
        subject = normalized(path_value(request, "subject"))
        alias = self.state.configs.get(subject, {}).get("alias")
        found = normalized(alias) if alias else subject
        await self.require(request, READ, found)
        return found

    async def readable(self, request: Request, found: Iterable[StoredSchema]) -> list[StoredSchema]:
        """Those of subjects that may be read."""
        schemas = [*found]
        may = await self.rights.judged(request, READ, {each.subject for each in schemas})
        return [each for each in schemas if may(each.subject)]

    def version(self, subject: str, version: int, *, deleted: bool = False) -> StoredSchema:
        """Raises 40401 or 40402."""
        found = self.state.get(subject, version, deleted=deleted)
        if found is None and not self.state.has(subject, deleted=deleted):
            raise refusals.subject_not_found(subject)
        if found is None:
            raise refusals.version_not_found(version)
        return found

    async def text(self, request: Request, schema: StoredSchema) -> str:
        """As `format` asks for it. Raises 403 for a text that would have those that may not be read in it."""
        form = request.query_params.get("format", "")
        if not form.strip():
            return schema.text
        if form == RESOLVED:
            await self.require(request, READ, *self._referred(schema))
        return await self.registry.checker.formatted(source_of(self.state, schema), form)

    def _referred(self, schema: StoredSchema) -> set[str]:
        """The subjects that its references lead to."""
        waiting, seen, subjects = [schema], {schema.key}, set()
        while waiting:
            referring = waiting.pop()
            for each in referring.references:
                key = self.state.target(referring.subject, each)
                subjects.add(key.subject)
                target = self.state.get(key.subject, key.version, deleted=True)
                if target is not None and key not in seen:
                    seen.add(key)
                    waiting.append(target)
        return subjects


@dataclass(frozen=True, slots=True)
class RawText:
    """A schema's text by itself, which is JSON only if its type is."""

    text: str


class _Nothing:
    pass


NOTHING: Any = _Nothing()
"""An answer without content."""
