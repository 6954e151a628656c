"""Registrations, look-ups of a text, compatibility, deletions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any

from starlette.requests import Request

from moldau.registry import bodies, refusals
from moldau.registry.bodies import SchemaBody, schema_body
from moldau.registry.checking import Source, referenced, reserved_problems, resolved, source_of
from moldau.registry.deciding import registering
from moldau.registry.deciding.decision import Decision
from moldau.registry.deciding.deleting import decide_subject_deletion, decide_version_deletion
from moldau.registry.deciding.registering import Candidate, check_mode, completed, decide_registration, registered
from moldau.registry.identity import guid_of_stored
from moldau.registry.names import context_of, normalized, version_of
from moldau.registry.records import Settings, StoredSchema
from moldau.registry.rights import CHECK, DELETE, READ, WRITE
from moldau.registry.serving.api import Api
from moldau.registry.serving.showing import shown
from moldau.registry.serving.table import TEXT, Endpoint, flags
from moldau.registry.state import IMPORTING, LEVEL_KEY, State
from moldau.schemas.model import ParsedSchema, SchemaType
from moldau.web.errors import ApiError
from moldau.web.requests import flag, json_body, path_value

ATTEMPTS = 10
LATEST = -1
RESOLVED = "resolved"


class Changed(Exception):
    """What was checked is another subject by now."""


@dataclass(frozen=True, slots=True)
class Prepared:
    candidate: Candidate
    parsed: ParsedSchema
    referred: tuple[str | None, ...]
    """The texts that its references lead to."""


@dataclass(frozen=True, slots=True)
class Writing:
    api: Api

    def endpoints(self) -> list[Endpoint]:
        register = (("format", TEXT), *flags("normalize", "force"))
        lookup = (("format", TEXT), *flags("normalize", "deleted"))
        verdict = flags("normalize", "verbose")
        version = "/subjects/{subject}/versions/{version}"
        return [
            Endpoint("POST", "/subjects/{subject}/versions", "Register a schema", self.register, register, "Schema",
                     (409, 422), "Registered", is_written=True),
            Endpoint("POST", "/subjects/{subject}", "Look a schema up", self.look_up, lookup, "Schema", (404, 422),
                     "Schema"),
            Endpoint("DELETE", "/subjects/{subject}", "Delete a subject", self.delete_subject, flags("permanent"),
                     None, (404, 422), "Numbers", is_written=True),
            Endpoint("DELETE", version, "Delete a version", self.delete_version, flags("permanent"), None, (404, 422),
                     "Number", is_written=True),
            Endpoint("POST", version + "/tags", "Tags, metadata and rules for the next version", self.tag, (), "Tags",
                     (404, 409, 422), "Schema", is_written=True),
            Endpoint("POST", "/compatibility/subjects/{subject}/versions/{version}", "Compatible with a version?",
                     self.is_compatible, verdict, "Schema", (404, 422), "Verdict"),
            Endpoint("POST", "/compatibility/subjects/{subject}/versions", "Compatible by the level?",
                     self.is_compatible_with_all, verdict, "Schema", (422,), "Verdict"),
        ]  # fmt: skip

    async def register(self, request: Request) -> dict[str, Any]:
        subject = await self.api.subject(request, WRITE)
        body = schema_body(await json_body(request))
        normalize = flag(request, "normalize") or bool(self.api.state.config(subject).get("normalize"))
        await self._may_refer(request, subject, body)
        body = await self._tagged(request, subject, body)
        is_forced = flag(request, "force")
        stored = await self._register(request, subject, body, normalize=normalize, is_forced=is_forced)
        has_more = (stored.metadata, stored.rule_set) != (body.metadata, body.rule_set) or not body.text.strip()
        if not has_more and not request.query_params.get("format"):
            # Clients remember a text in an answer instead of their own, which for Protobuf is of another form.
            return {"id": stored.id, "version": stored.version, "guid": str(guid_of_stored(stored))}
        return shown(stored, text=await self.api.text(request, stored))

    async def _tagged(self, request: Request, subject: str, body: SchemaBody) -> SchemaBody:
        """A version that comes of tags is noted in its metadata, as each that a request names."""
        if not body.taggings:
            return body
        source = Source(body.type, body.text, referenced(self.api.state, context_of(subject), body.references))
        text = await self.api.registry.checker.tagged(source, body.taggings, request.is_disconnected)
        bodies.check_size(text)
        return replace(body, text=text, taggings=(), version=body.version or LATEST)

    async def _may_refer(self, request: Request, subject: str, body: SchemaBody) -> None:
        """Whoever refers to a schema gets to know it."""
        targets = [self.api.state.target(subject, each).subject for each in body.references]
        await self.api.require(request, READ, *targets)

    async def _register(
        self, request: Request, subject: str, body: SchemaBody, *, normalize: bool, is_forced: bool
    ) -> StoredSchema:
        """Checked without holding others up, and decided if the subject is still what was checked."""
        state = self.api.state
        for _ in range(ATTEMPTS):
            check_mode(state, subject, body)
            basis = _basis(state, subject)
            whole = completed(state, subject, body)
            if not whole.text.strip():
                raise refusals.invalid_schema("Empty schema")
            is_checked = not is_forced and state.mode(subject) not in IMPORTING
            async with self._turn(request, subject, whole):
                prepared = await self._by_references(await self._prepared(subject, whole, normalize=normalize))
                problems: Sequence[str] = ()
                if is_checked and registered(state, prepared.candidate) is None:
                    problems = await self._problems(subject, prepared, state.versions(subject))

            def decide(
                now: State, basis: object = basis, prepared: Prepared = prepared, problems: Sequence[str] = problems
            ) -> Decision[StoredSchema]:
                if _basis(now, subject) != basis or _referred(now, prepared.candidate) != prepared.referred:
                    raise Changed
                return decide_registration(now, prepared.candidate, problems)

            try:
                return await self.api.registry.write(decide)
            except Changed:
                continue
        raise refusals.timed_out("the subject changed again and again; try again")

    def _turn(self, request: Request, subject: str, body: SchemaBody) -> AbstractAsyncContextManager[None]:
        """By what is parsed for it at most. Raises 42201."""
        state = self.api.state
        size = len(body.text) + sum(len(each.text) for each in referenced(state, context_of(subject), body.references))
        size += max((len(each.text) for each in state.versions(subject)), default=0)
        return self.api.registry.checker.turn(size, request.is_disconnected)

    async def _prepared(self, subject: str, body: SchemaBody, *, normalize: bool) -> Prepared:
        state, checker = self.api.state, self.api.registry.checker
        context = context_of(subject)
        references = resolved(state, context, body.references)
        candidate = Candidate(subject, "", body.type, references, body.metadata, body.rule_set, body.version, body.id)
        referred = _referred(state, candidate)
        parsed = await checker.parse(Source(body.type, body.text, referenced(state, context, references)))
        text = await (checker.normalized(parsed) if normalize else checker.canonical(parsed))
        return Prepared(replace(candidate, text=text), parsed, referred)

    async def _by_references(self, prepared: Prepared, *, deleted: bool = False) -> Prepared:
        """Avro for Java sends in one text what was registered as several that refer to each other: it is the same."""
        state, candidate = self.api.state, prepared.candidate
        is_whole = candidate.type is SchemaType.AVRO and not candidate.references and candidate.version == 0
        if not is_whole or registered(state, candidate, deleted=deleted) is not None:
            return prepared
        for each in reversed(state.versions(candidate.subject, deleted=deleted)):
            if each.type != SchemaType.AVRO or not each.references:
                continue
            if await self.api.registry.checker.formatted(source_of(state, each), RESOLVED) == candidate.text:
                same = replace(candidate, text=each.text, references=each.references)
                return replace(prepared, candidate=same, referred=_referred(state, same))
        return prepared

    async def _problems(self, subject: str, prepared: Prepared, previous: Sequence[StoredSchema]) -> list[str]:
        config, own = self.api.state.config(subject), prepared.candidate.metadata
        reserved = None
        if config.get("validateFields"):
            reserved = reserved_problems(prepared.parsed, own, previous[-1].metadata if previous else None)
        group = config.get("compatibilityGroup")
        if group is not None:
            previous = [each for each in previous if _property(each.metadata, group) == _property(own, group)]
        return await self.api.registry.checker.problems(
            prepared.parsed,
            config[LEVEL_KEY],
            previous,
            lambda each: source_of(self.api.state, each),
            reserved=reserved,
        )

    async def look_up(self, request: Request) -> dict[str, Any]:
        subject, deleted = await self.api.read_subject(request), flag(request, "deleted")
        body = schema_body(await json_body(request))
        await self._may_refer(request, subject, body)
        if not self.api.state.has(subject, deleted=deleted):
            raise refusals.subject_not_found(subject)
        if not body.text.strip():
            raise refusals.schema_not_found()
        normalize = flag(request, "normalize") or bool(self.api.state.config(subject).get("normalize"))
        body = await self._tagged(request, subject, body)
        async with self._turn(request, subject, body):
            prepared = await self._prepared(subject, replace(body, version=0, id=-1), normalize=normalize)
            prepared = await self._by_references(prepared, deleted=deleted)
        found = _looked_up(self.api.state, prepared.candidate, deleted=deleted)
        if found is None:
            raise refusals.schema_not_found()
        return shown(found, text=await self.api.text(request, found))

    async def delete_subject(self, request: Request) -> list[int]:
        subject, permanent = await self.api.subject(request, DELETE), flag(request, "permanent")
        return await self.api.registry.write(
            lambda state: decide_subject_deletion(state, subject, is_permanent=permanent)
        )

    async def delete_version(self, request: Request) -> int:
        subject, permanent = await self.api.subject(request, DELETE), flag(request, "permanent")
        version = version_of(path_value(request, "version"))
        return await self.api.registry.write(
            lambda state: decide_version_deletion(state, subject, version, is_permanent=permanent)
        )

    async def tag(self, request: Request) -> dict[str, Any]:
        """The same schema with other tags, metadata and rules, as a version behind the others."""
        subject = await self.api.subject(request, WRITE)
        found = self.api.version(subject, version_of(path_value(request, "version")))
        body = bodies.tags_body(await json_body(request))
        metadata = found.metadata if body.metadata is None else body.metadata
        asked = SchemaBody(
            text=found.text,
            type=SchemaType(found.type),
            references=found.references,
            metadata=registering.merged(metadata, {"properties": {registering.VERSION_PROPERTY: str(body.version)}}),
            rule_set=registering.changed_rules(self.api.state, subject, body),
            taggings=body.taggings,
        )
        asked = replace(await self._tagged(request, subject, asked), version=body.version)
        return shown(await self._register(request, subject, asked, normalize=False, is_forced=False))

    async def is_compatible(self, request: Request) -> dict[str, Any]:
        subject = await self._compared(request)
        version = version_of(path_value(request, "version"))
        body = schema_body(await json_body(request))
        previous = self.api.state.get(subject, version)
        if previous is None and version != LATEST:
            raise refusals.version_not_found(version)
        return await self._verdict(request, subject, body, [] if previous is None else [previous])

    async def is_compatible_with_all(self, request: Request) -> dict[str, Any]:
        subject = await self._compared(request)
        body = schema_body(await json_body(request))
        return await self._verdict(request, subject, body, self.api.state.versions(subject))

    async def _compared(self, request: Request) -> str:
        subject = normalized(path_value(request, "subject"))
        await self.api.require(request, CHECK, subject)
        return subject

    async def _verdict(
        self, request: Request, subject: str, body: SchemaBody, previous: Sequence[StoredSchema]
    ) -> dict[str, Any]:
        await self._may_refer(request, subject, body)
        verbose = flag(request, "verbose")
        normalize = flag(request, "normalize") or bool(self.api.state.config(subject).get("normalize"))
        try:
            if not body.text.strip():
                raise refusals.invalid_schema("Empty schema")
            body = await self._tagged(request, subject, body)
            async with self._turn(request, subject, body):
                prepared = await self._prepared(subject, replace(body, version=0, id=-1), normalize=normalize)
                problems = await self._problems(subject, prepared, previous)
        except ApiError as wrong:
            if wrong.code != refusals.INVALID_SCHEMA or not verbose:
                raise
            problems = [wrong.message]
        answer: dict[str, Any] = {"is_compatible": not problems}
        return {**answer, "messages": problems} if verbose else answer


def _basis(state: State, subject: str) -> object:
    """All of a subject that a check of compatibility looks at."""
    return [each.key for each in state.versions(subject)], state.config(subject), state.mode(subject)


def _referred(state: State, candidate: Candidate) -> tuple[str | None, ...]:
    """Nobody is known to refer to them until the candidate is written: till then they may be deleted for good."""
    targets = [state.target(candidate.subject, each) for each in candidate.references]
    found = [state.get(each.subject, each.version, deleted=True) for each in targets]
    return tuple(None if each is None else each.text for each in found)


def _property(metadata: Settings | None, name: str) -> str | None:
    found: str | None = ((metadata or {}).get("properties") or {}).get(name)
    return found


def _looked_up(state: State, candidate: Candidate, *, deleted: bool) -> StoredSchema | None:
    """Who asks without metadata and rules means the text with any."""
    found = registered(state, candidate, deleted=deleted)
    if found is not None or candidate.metadata is not None or candidate.rule_set is not None:
        return found
    return next(
        (
            each
            for each in reversed(state.versions(candidate.subject, deleted=deleted))
            if (each.text, each.references) == (candidate.text, candidate.references)
        ),
        None,
    )
