"""A JSON Schema as the registry, its clients and the tools see it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.core import limits
from moldau.schemas.json_schema import comparing
from moldau.schemas.json_schema.costs import Costs, may_multiply
from moldau.schemas.json_schema.documents import Documents, Located, draft_of
from moldau.schemas.json_schema.patterns import cost_of_all
from moldau.schemas.json_schema.validating import check_value, compile_validator
from moldau.schemas.json_text import quoted, read_schema_text, read_value, sorted_keys, write_json
from moldau.schemas.model import Incompatibility, InvalidSchema, InvalidValue, Json, ReferencedText, SchemaType


@dataclass(frozen=True, slots=True, eq=False)
class JsonSchema:
    """A ParsedSchema. `canonical` is what was given, without the spaces."""

    canonical: str
    contents: Json
    root: Located
    validator: Any
    may_multiply: bool
    patterns_cost: int

    @property
    def type(self) -> SchemaType:
        return SchemaType.JSON

    @property
    def record_name(self) -> str | None:
        title = self.contents.get("title") if isinstance(self.contents, dict) else None
        return title if isinstance(title, str) else None

    @property
    def fields(self) -> Collection[str]:
        properties = self.contents.get("properties") if isinstance(self.contents, dict) else None
        return properties if isinstance(properties, dict) else ()

    @property
    def normalized(self) -> str:
        return write_json(sorted_keys(self.contents))

    def formatted(self, form: str) -> str:  # noqa: ARG002  Confluent's registry has no other form of JSON Schemas either
        return self.canonical

    def incompatibilities(self, writer: JsonSchema) -> Sequence[Incompatibility]:
        return comparing.incompatibilities(self.root, writer.root)

    def decode(self, payload: bytes, message: Sequence[int] = ()) -> Json:  # noqa: ARG002  Protobuf has indexes
        value = read_value(payload)
        self._check(value, len(payload))
        return value

    def encode(self, value: Json, message: Sequence[int] = ()) -> bytes:  # noqa: ARG002  Protobuf has indexes
        try:
            payload = write_json(value).encode()
        except UnicodeEncodeError:
            raise InvalidValue("half a surrogate pair is no character") from None
        self._check(value, len(payload))
        return payload

    def _check(self, value: Json, size: int) -> None:
        evaluations, costs = 1, Costs()
        if self.may_multiply or self.patterns_cost * size > limits.JSON_EXPLAINED_MATCHING_MAX:
            evaluations = costs.count(self.root, value)
        is_explained = (
            evaluations <= limits.JSON_EXPLAINED_EVALUATIONS_MAX and costs.matched <= limits.JSON_EXPLAINED_MATCHING_MAX
        )
        check_value(self.validator, value, is_explained=is_explained)


def parse(text: str, references: Sequence[ReferencedText] = ()) -> JsonSchema:
    """Raises InvalidSchema: no JSON, no schema of its draft, or a `$ref` to what is not there."""
    total = sum(len(reference.text) for reference in references)
    if total > limits.SCHEMA_REFERENCES_CHARS_MAX:
        raise InvalidSchema(
            f"its references have {total} characters; at most {limits.SCHEMA_REFERENCES_CHARS_MAX} are allowed"
        )
    contents = _read(text)
    documents = Documents({each.name: _bridged(_referenced(each)) for each in references}, draft_of(contents))
    root = _bridged(contents)
    patterns_cost = cost_of_all([root, *documents.by_name.values()])
    validator = compile_validator(root, documents)
    located = documents.locate(root)
    return JsonSchema(write_json(contents), contents, located, validator, may_multiply(root), patterns_cost)


def _read(text: str) -> Json:
    contents = read_schema_text(text)
    if not isinstance(contents, dict | bool):
        raise InvalidSchema("a JSON Schema is an object or a boolean")
    return contents


def _bridged(contents: Json) -> Json:
    """`definitions` are found as `$defs`, too, as in Confluent's registry: the word changed between the drafts."""
    if not isinstance(contents, dict):
        return contents
    definitions, defs = contents.get("definitions"), contents.get("$defs", {})
    if not isinstance(definitions, dict) or not isinstance(defs, dict) or not definitions:
        return contents
    return {**contents, "$defs": {**definitions, **defs}}


def _referenced(reference: ReferencedText) -> Json:
    try:
        return _read(reference.text)
    except InvalidSchema as error:
        raise InvalidSchema(f"reference {quoted(reference.name)}: {error}") from None
