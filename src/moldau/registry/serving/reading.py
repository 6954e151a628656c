"""Schemas by ids, GUIDs, subjects and versions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from starlette.requests import Request

from moldau.registry import refusals
from moldau.registry.names import INT_MAX, context_of, in_context, version_of
from moldau.registry.records import StoredSchema
from moldau.registry.rights import READ
from moldau.registry.serving.api import Api, RawText
from moldau.registry.serving.showing import page, page_of_schemas, shown
from moldau.registry.serving.table import FLAG, PAGE, TEXT, Endpoint, flags
from moldau.schemas.model import SchemaType
from moldau.schemas.subjects import CONTEXT_WILDCARD, DEFAULT_CONTEXT, QualifiedSubject
from moldau.web.authentication import forbidden
from moldau.web.errors import ApiError
from moldau.web.requests import flag, path_value

FORM = (("format", TEXT),)
VERSION = "/subjects/{subject}/versions/{version}"
ID_CHARS_MAX = 20


@dataclass(frozen=True, slots=True)
class Reading:
    api: Api

    def endpoints(self) -> list[Endpoint]:
        by_id = (("subject", TEXT), *FORM)
        places = (("subject", TEXT), ("deleted", FLAG), *PAGE)
        listed = (("subjectPrefix", TEXT), *flags("deleted", "latestOnly", "aliases"), ("ruleType", TEXT), *PAGE)
        version = (("referenceFormat", TEXT), ("deleted", FLAG), *FORM)
        return [
            Endpoint("GET", "/schemas", "All schemas", self.schemas, listed, reply="Schemas"),
            Endpoint("GET", "/schemas/types", "Types of schemas", self.types, reply="Texts"),
            Endpoint("GET", "/schemas/ids/{id}", "The schema of an id", self.by_id,
                     (*by_id, ("fetchMaxId", FLAG)), None, (404, 422), "Schema"),
            Endpoint("GET", "/schemas/ids/{id}/schema", "Its text alone", self.text_by_id, by_id, None, (404, 422)),
            Endpoint("GET", "/schemas/ids/{id}/subjects", "Subjects that have it", self.subjects_of, places, None,
                     (404,), "Texts"),
            Endpoint("GET", "/schemas/ids/{id}/versions", "Versions that are it", self.versions_of, places, None,
                     (404,)),
            Endpoint("GET", "/schemas/guids/{guid}", "The schema of a GUID", self.by_guid, FORM, None, (404, 422),
                     "Schema"),
            Endpoint("GET", "/schemas/guids/{guid}/ids", "Ids in contexts", self.ids_of_guid, (), None, (404,)),
            Endpoint("GET", "/subjects", "All subjects", self.subjects,
                     (("subjectPrefix", TEXT), *flags("deleted", "deletedOnly"), *PAGE), reply="Texts"),
            Endpoint("GET", "/subjects/{subject}/versions", "Versions of a subject", self.versions,
                     (*flags("deleted", "deletedOnly", "deletedAsNegative"), *PAGE), None, (404,), "Numbers"),
            Endpoint("GET", VERSION, "One version", self.version, version, None, (404, 422), "Schema"),
            Endpoint("GET", VERSION + "/schema", "Its text alone", self.text_of_version,
                     (("deleted", FLAG), *FORM), None, (404, 422)),
            Endpoint("GET", VERSION + "/referencedby", "Ids of schemas that refer to it", self.referrers,
                     (("deleted", FLAG), *PAGE), None, (404, 422), "Numbers"),
            Endpoint("GET", "/subjects/{subject}/metadata", "The latest version with these properties",
                     self.by_metadata, (("key", TEXT), ("value", TEXT), ("deleted", FLAG), *FORM), None, (404, 422),
                     "Schema"),
        ]  # fmt: skip

    async def types(self, _: Request) -> list[str]:
        return [each.value for each in (SchemaType.JSON, SchemaType.PROTOBUF, SchemaType.AVRO)]

    async def schemas(self, request: Request) -> list[dict[str, Any]]:
        rule_type = request.query_params.get("ruleType", "")
        names = await self._names(request)
        found = (each for each in self._schemas(request, names) if not rule_type or _has_rule(each, rule_type))
        return [shown(each) for each in page_of_schemas(request, found)]

    def _schemas(self, request: Request, names: Iterable[str]) -> Iterator[StoredSchema]:
        deleted, latest = flag(request, "deleted"), flag(request, "latestOnly")
        for name in names:
            versions = self.api.state.versions(name, deleted=deleted)
            yield from versions[-1:] if latest else versions

    async def subjects(self, request: Request) -> list[str]:
        deleted, only = flag(request, "deleted"), flag(request, "deletedOnly")
        names, state = await self._names(request), self.api.state
        return page(request, (
            name
            for name in names
            if (not state.has(name) if only else deleted or state.has(name))
        ))  # fmt: skip

    async def _names(self, request: Request) -> Iterator[str]:
        """Of subjects that begin as is asked for and may be read."""
        prefix = request.query_params.get("subjectPrefix", CONTEXT_WILDCARD)
        may = await self.api.rights.judged(request, READ, self._beginning(prefix))
        return filter(may, self._beginning(prefix))

    def _beginning(self, prefix: str) -> Iterator[str]:
        """`:*:` is any context."""
        is_anywhere = prefix.startswith(CONTEXT_WILDCARD)
        beginning = prefix.removeprefix(CONTEXT_WILDCARD)
        for name in self.api.state.names:
            compared = QualifiedSubject.parse(name).subject if is_anywhere and beginning else name
            if compared.startswith(beginning):
                yield name

    async def by_id(self, request: Request) -> dict[str, Any]:
        found = await self._of_id(request)
        text = await self.api.text(request, found)
        answer = shown(found, text=text, has_id=False)
        if flag(request, "fetchMaxId"):
            answer["maxId"] = self.api.state.max_ids[context_of(found.subject)]
        return answer

    async def text_by_id(self, request: Request) -> RawText:
        return RawText(await self.api.text(request, await self._of_id(request)))

    async def _of_id(self, request: Request) -> StoredSchema:
        """Raises 40403, or 403 if all that have it may not be read."""
        return (await self._allowed(request, self._places(request)))[0]

    async def _allowed(self, request: Request, places: Iterable[StoredSchema]) -> list[StoredSchema]:
        allowed = await self.api.readable(request, places)
        if not allowed:
            raise forbidden()
        return allowed

    def _places(self, request: Request) -> list[StoredSchema]:
        """Versions with this id: in the context of the subject that is named, or wherever that subject is."""
        text = path_value(request, "id")
        if not text.isascii() or not text.isdecimal() or len(text) > ID_CHARS_MAX or int(text) > INT_MAX:
            raise ApiError(404, "HTTP 404 Not Found")
        schema_id, state = int(text), self.api.state
        named = QualifiedSubject.parse(request.query_params.get("subject", ""))
        found = [*state.places(named.context, schema_id)]
        if not found and named.context == DEFAULT_CONTEXT and named.subject:
            others = (each for context in sorted(state.contexts) for each in state.places(context, schema_id))
            found = [each for each in others if each.subject == in_context(context_of(each.subject), named.subject)]
        same = [each for each in found if named.subject and each.subject == str(named)]
        if not found:
            raise refusals.schema_not_found(schema_id)
        return [*same, *(each for each in found if each not in same)]

    async def subjects_of(self, request: Request) -> list[str]:
        return page(request, [*dict.fromkeys(each.subject for each in await self._shown_places(request))])

    async def versions_of(self, request: Request) -> list[dict[str, Any]]:
        found = await self._shown_places(request)
        return page(request, [{"subject": each.subject, "version": each.version} for each in found])

    async def _shown_places(self, request: Request) -> list[StoredSchema]:
        deleted, subject = flag(request, "deleted"), request.query_params.get("subject", "")
        found = await self._allowed(request, self._places(request))
        named = QualifiedSubject.parse(subject)
        return [
            each
            for each in found
            if (deleted or not each.is_deleted)
            and (not named.subject or each.subject == in_context(context_of(each.subject), named.subject))
        ]

    async def by_guid(self, request: Request) -> dict[str, Any]:
        found = (await self._allowed(request, self._of_guid(request)))[0]
        return shown(found, text=await self.api.text(request, found), has_id=False)

    async def ids_of_guid(self, request: Request) -> list[dict[str, Any]]:
        allowed = await self._allowed(request, self._of_guid(request))
        pairs = sorted({(context_of(each.subject), each.id) for each in allowed})
        return [{"context": context, "id": schema_id} for context, schema_id in pairs]

    def _of_guid(self, request: Request) -> Iterator[StoredSchema]:
        text = path_value(request, "guid")
        try:
            ids = self.api.state.ids_of(UUID(text))
        except ValueError:
            ids = {}
        if not ids:
            raise refusals.schema_not_found(text)
        for context, schema_id in ids.items():
            yield from self.api.state.places(context, schema_id)

    async def versions(self, request: Request) -> list[int]:
        subject, state = await self.api.read_subject(request), self.api.state
        deleted, only, negative = (flag(request, each) for each in ("deleted", "deletedOnly", "deletedAsNegative"))
        if not state.has(subject, deleted=deleted or only or negative):
            raise refusals.subject_not_found(subject)
        found = state.versions(subject, deleted=deleted or only or negative)
        if only and not negative:
            found = [each for each in found if each.is_deleted]
        return page(request, [-each.version if negative and each.is_deleted else each.version for each in found])

    async def _version(self, request: Request, *, deleted: bool) -> StoredSchema:
        subject = await self.api.read_subject(request)
        return self.api.version(subject, version_of(path_value(request, "version")), deleted=deleted)

    async def version(self, request: Request) -> dict[str, Any]:
        found = await self._version(request, deleted=flag(request, "deleted"))
        answer = shown(found, text=await self.api.text(request, found))
        if request.query_params.get("referenceFormat") == "qualified":
            context = context_of(found.subject)
            for each in answer.get("references", ()):
                each["subject"] = in_context(context, each["subject"])
        return answer

    async def text_of_version(self, request: Request) -> RawText:
        found = await self._version(request, deleted=flag(request, "deleted"))
        return RawText(await self.api.text(request, found))

    async def referrers(self, request: Request) -> list[int]:
        found = await self._version(request, deleted=True)
        referring = self.api.state.referrers(found.key, deleted=flag(request, "deleted"))
        return page(request, sorted({each.id for each in await self.api.readable(request, referring)}))

    async def by_metadata(self, request: Request) -> dict[str, Any]:
        subject, deleted = await self.api.read_subject(request), flag(request, "deleted")
        if not self.api.state.has(subject, deleted=deleted):
            raise refusals.subject_not_found(subject)
        keys, values = request.query_params.getlist("key"), request.query_params.getlist("value")
        wanted = [*zip(keys, values, strict=False)]
        for each in reversed(self.api.state.versions(subject, deleted=deleted)):
            properties = (each.metadata or {}).get("properties") or {}
            if all(properties.get(key) == value for key, value in wanted):
                return shown(each, text=await self.api.text(request, each))
        raise refusals.schema_not_found()


def _has_rule(schema: StoredSchema, rule_type: str) -> bool:
    rules = schema.rule_set or {}
    kinds = ("migrationRules", "domainRules", "encodingRules")
    return any(rule.get("type") == rule_type for kind in kinds for rule in rules.get(kind) or ())
