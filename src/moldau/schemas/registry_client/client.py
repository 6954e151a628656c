"""Schemas from a registry, and to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote
from uuid import UUID

from moldau.schemas import formats
from moldau.schemas.model import InvalidSchema, ParsedSchema, Reference, ReferencedText
from moldau.schemas.registry_client.answers import Compatibility, SchemaText, StoredSchema
from moldau.schemas.registry_client.cache import Cache
from moldau.schemas.registry_client.errors import RegistryError
from moldau.schemas.registry_client.settings import Settings
from moldau.schemas.registry_client.transport import Transport
from moldau.schemas.subjects import DEFAULT_CONTEXT, QualifiedSubject

LATEST = "latest"
# With those that they refer to in turn; a circle or a hostile registry ends here.
REFERENCES_MAX = 1000
# Of texts that are kept. Parsed, they take 14 times as much (Avro), 32 (JSON Schema) or 83 (Protobuf).
STORED_CHARS_MAX = 32 << 20
PARSED_CHARS_MAX = 8 << 20


class RegistryClient:
    """Any number of threads may use one. It never changes what it has handed out."""

    def __init__(self, settings: Settings | Mapping[str, Any], transport: Transport | None = None) -> None:
        chosen = settings if isinstance(settings, Settings) else Settings.of(settings)
        self._transport = transport or Transport(chosen)
        kept = chosen.cached_schemas_max
        self._stored: Cache[tuple[Any, ...], StoredSchema] = Cache(kept, chars_max=STORED_CHARS_MAX)
        self._latest: Cache[str, StoredSchema] = Cache(kept, chosen.latest_valid_s, chars_max=STORED_CHARS_MAX)
        self._parsed: Cache[tuple[SchemaText, str], ParsedSchema] = Cache(kept, chars_max=PARSED_CHARS_MAX)

    @property
    def url(self) -> str:
        return self._transport.url

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> RegistryClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Schemas

    def by_id(self, id: int, subject: str | None = None) -> StoredSchema:
        """The schema of an id; ids are of a context, and a subject says of which one. Raises RegistryError."""

        def ask() -> StoredSchema:
            answer = self._transport.request("GET", f"/schemas/ids/{id}", query={"subject": subject})
            return self._read(answer, id=id)

        return self._cached(("id", id, subject), ask)

    def by_guid(self, guid: UUID) -> StoredSchema:
        """The schema of a GUID, which is the same in every registry. Raises RegistryError."""
        return self._cached(
            ("guid", guid), lambda: self._read(self._transport.request("GET", f"/schemas/guids/{guid}"), guid=guid)
        )

    def version(self, subject: str, version: int | str = LATEST) -> StoredSchema:
        """A version of a subject; which one is the latest may be known from a minute ago. Raises RegistryError."""

        def ask() -> StoredSchema:
            answer = self._transport.request("GET", f"{_subject(subject)}/versions/{version}")
            return self._read(answer, subject=subject)

        if version != LATEST:
            return self._cached(("version", subject, version), ask)
        latest = self._latest.get(subject)
        if latest is None:
            latest = ask()
            self._latest.put(subject, latest, chars=len(latest.schema.text))
        return latest

    def register(self, subject: str, schema: SchemaText, *, normalize: bool = False) -> StoredSchema:
        """The schema as a version of a subject, new or there already. Raises RegistryError."""

        def ask() -> StoredSchema:
            answer = self._transport.request(
                "POST", f"{_subject(subject)}/versions", query={"normalize": normalize}, body=schema.body()
            )
            self._latest.forget(subject)
            return self._read(schema.body() | (answer if isinstance(answer, dict) else {}), subject=subject)

        return self._cached(("registered", subject, schema, normalize), ask)

    def lookup(
        self, subject: str, schema: SchemaText, *, normalize: bool = False, deleted: bool = False
    ) -> StoredSchema:
        """The version that a schema is of a subject. Raises RegistryError if it is none."""

        def ask() -> StoredSchema:
            query = {"normalize": normalize, "deleted": deleted}
            answer = self._transport.request("POST", _subject(subject), query=query, body=schema.body())
            return self._read(schema.body() | (answer if isinstance(answer, dict) else {}), subject=subject)

        return self._cached(("looked up", subject, schema, normalize, deleted), ask)

    def compatibility(
        self, subject: str, schema: SchemaText, version: int | str | None = LATEST, *, normalize: bool = False
    ) -> Compatibility:
        """Whether a schema may follow a version, or, with None, all that the subject's level looks at."""
        path = f"/compatibility{_subject(subject)}/versions" + ("" if version is None else f"/{version}")
        query = {"verbose": True, "normalize": normalize}
        answer = self._transport.request("POST", path, query=query, body=schema.body())
        if not isinstance(answer, dict) or not isinstance(answer.get("is_compatible"), bool):
            raise RegistryError(502, f"an answer that is no verdict: {answer!r:.200}", self.url)
        return Compatibility(answer["is_compatible"], tuple(map(str, answer.get("messages") or ())))

    def subjects(self, prefix: str | None = None) -> list[str]:
        return self._listed("/subjects", {"subjectPrefix": prefix}, str)

    def versions(self, subject: str) -> list[int]:
        return self._listed(f"{_subject(subject)}/versions", {}, int)

    # What they mean

    def parsed(self, schema: SchemaText, context: str = DEFAULT_CONTEXT) -> ParsedSchema:
        """The schema with all that it refers to. Raises InvalidSchema, and RegistryError if one can't be had."""
        known = self._parsed.get((schema, context))
        if known is None:
            references = self.references(schema, context)
            known = formats.parse(schema.type, schema.text, references)
            chars = len(schema.text) + sum(len(each.text) for each in references)
            self._parsed.put((schema, context), known, chars=chars)
        return known

    def references(self, schema: SchemaText, context: str = DEFAULT_CONTEXT) -> list[ReferencedText]:
        """The texts that a schema refers to, each once, those that others need before them."""
        found: dict[str, ReferencedText] = {}
        opened: set[str] = set()
        waiting = [(reference, False) for reference in reversed(schema.references)]
        while waiting:
            reference, done = waiting.pop()
            if reference.name in found:
                continue
            if len(opened) > REFERENCES_MAX:
                raise InvalidSchema(f"the schema refers to more than {REFERENCES_MAX} others")
            text = self._referenced(reference, context)
            if done:
                found[reference.name] = ReferencedText(reference.name, text.text)
            elif reference.name in opened:
                raise InvalidSchema(f"the references go in a circle at {reference.name!r}")
            else:
                opened.add(reference.name)
                waiting.append((reference, True))
                waiting += [(needed, False) for needed in reversed(text.references)]
        return list(found.values())

    def _referenced(self, reference: Reference, context: str) -> SchemaText:
        """A version that schemas refer to may be deleted, as long as it is only softly."""
        named = QualifiedSubject.parse(reference.subject)
        subject = str(QualifiedSubject(context, named.subject) if named.context == DEFAULT_CONTEXT else named)
        path = f"{_subject(subject)}/versions/{reference.version}"
        return self._cached(
            ("referenced", subject, reference.version),
            lambda: self._read(self._transport.request("GET", path, query={"deleted": True}), subject=subject),
        ).schema

    def _read(self, answer: Any, **known: Any) -> StoredSchema:
        return StoredSchema.read(answer, self.url, **known)

    def _cached(self, key: tuple[Any, ...], ask: Callable[[], StoredSchema]) -> StoredSchema:
        known = self._stored.get(key)
        if known is None:
            known = ask()
            self._stored.put(key, known, chars=len(known.schema.text))
        return known

    def _listed(self, path: str, query: Mapping[str, Any], kind: type) -> list[Any]:
        answer = self._transport.request("GET", path, query=query)
        if not isinstance(answer, list) or not all(isinstance(one, kind) for one in answer):
            raise RegistryError(502, f"an answer that is no list: {answer!r:.200}", self.url)
        return answer


def _subject(subject: str) -> str:
    return f"/subjects/{quote(subject, safe='')}"
