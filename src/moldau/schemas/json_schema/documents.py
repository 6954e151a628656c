"""The documents that a JSON Schema is made of: its own text, those it refers to, and meta-schemas.

What is in none of these is unknown: no network is ever asked for a `$ref`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from jsonschema_specifications import REGISTRY
from referencing import Registry
from referencing import jsonschema as drafts
from referencing.exceptions import NoSuchResource, Unresolvable

from moldau.schemas.json_text import quoted
from moldau.schemas.model import InvalidSchema, Json

# A base that no text names, so that relative references have one. RFC 3986 merges paths only of a known hierarchy.
BASE = "json-schema:///"


class Draft(Enum):
    """The drafts of JSON Schema that are supported, oldest first."""

    DRAFT_4 = "http://json-schema.org/draft-04/schema"
    DRAFT_6 = "http://json-schema.org/draft-06/schema"
    DRAFT_7 = "http://json-schema.org/draft-07/schema"
    DRAFT_2019_09 = "https://json-schema.org/draft/2019-09/schema"
    DRAFT_2020_12 = "https://json-schema.org/draft/2020-12/schema"

    @property
    def has_siblings_of_references(self) -> bool:
        """Whether keywords beside `$ref` count."""
        return self in (Draft.DRAFT_2019_09, Draft.DRAFT_2020_12)

    @property
    def specification(self) -> Any:
        return _SPECIFICATIONS[self]


_SPECIFICATIONS: Mapping[Draft, Any] = {
    Draft.DRAFT_4: drafts.DRAFT4,
    Draft.DRAFT_6: drafts.DRAFT6,
    Draft.DRAFT_7: drafts.DRAFT7,
    Draft.DRAFT_2019_09: drafts.DRAFT201909,
    Draft.DRAFT_2020_12: drafts.DRAFT202012,
}
_BY_NAME = {draft.value.partition("://")[2]: draft for draft in Draft}


def draft_of(contents: Json, default: Draft = Draft.DRAFT_7) -> Draft:
    """By `$schema`; a text without one is of draft 7, as in Confluent's registry. Raises InvalidSchema."""
    if not isinstance(contents, dict) or "$schema" not in contents:
        return default
    name = contents["$schema"]
    if not isinstance(name, str):
        raise InvalidSchema("at /$schema: no text")
    draft = _BY_NAME.get(name.partition("://")[2].rstrip("#"))
    if draft is None:
        raise InvalidSchema(
            f"at /$schema: {quoted(name[:100])} is none of the drafts 4, 6, 7, 2019-09 and 2020-12 of JSON Schema"
        )
    return draft


@dataclass(frozen=True, slots=True, eq=False)
class Documents:
    """Texts by the names that others use for them."""

    by_name: Mapping[str, Json]
    draft: Draft

    def find(self, uri: str) -> Json:
        """A reference's name is all of an address, or the last part of it. Raises KeyError."""
        address = uri.partition("#")[0]
        if address in self.by_name:
            return self.by_name[address]
        for name in sorted(self.by_name, key=len, reverse=True):
            if name.strip("./") and address.endswith("/" + name.lstrip("./")):
                return self.by_name[name]
        raise KeyError(uri)

    def locate(self, root: Json) -> Located:
        """The schema itself."""
        registry: Any = Registry(retrieve=self._retrieve).combine(REGISTRY)
        resource = self.draft.specification.create_resource(root)
        address = resource.id() or ""
        resolver = registry.with_resource(address, resource).resolver(address)
        return Located(root, Place(resolver, self.draft))

    def _retrieve(self, uri: str) -> Any:
        try:
            contents = self.find(uri)
        except KeyError:
            raise NoSuchResource(ref=uri) from None
        draft = draft_of(contents, self.draft)
        return draft.specification.create_resource(contents)


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """What references in a schema are relative to, and the draft that it is read by."""

    resolver: Any
    draft: Draft

    def inside(self, contents: dict[str, Json]) -> Place:
        """An id makes what is in its schema relative to itself."""
        resource = self.draft.specification.create_resource(contents)
        return self if resource.id() is None else Place(self.resolver.in_subresource(resource), self.draft)

    def follow(self, ref: str) -> Located:
        """Raises InvalidSchema."""
        try:
            found = self.resolver.lookup(ref)
        except (Unresolvable, ValueError, TypeError, AttributeError):
            raise InvalidSchema(f"the $ref {quoted(ref[:200])} leads to nothing here and in the references") from None
        return Located(found.contents, Place(found.resolver, draft_of(found.contents, self.draft)))


@dataclass(frozen=True, slots=True, eq=False)
class Located:
    """A schema as it is written, in its place."""

    contents: Json
    place: Place
