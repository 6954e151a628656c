"""A JSON Schema of a registry as an Arrow type. What it leaves open is text: a STRING takes any value as its JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

import pyarrow as pa

from moldau.spark.formats.interface import FormatError
from moldau.spark.formats.type_names import struct_of

ANYTHING = pa.string()
INSTANT = pa.timestamp("us", "UTC")
STRINGS = {"date": pa.date32(), "date-time": INSTANT}
# What Connect's converter writes beside `type`, and this package where it makes a schema of a column's type.
CONNECT_TYPES = {
    "int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64(), "float32": pa.float32(),
    "float64": pa.float64(), "bytes": pa.binary(),
}  # fmt: skip
DECIMAL_TITLE = "decimal"  # with connect.parameters precision and scale
DEPTH_MAX = 64  # a schema that holds itself ends as text here, as one does that is nested deeper than columns are


def arrow_type_of_schema(text: str, references: Mapping[str, str], *, place: str) -> pa.DataType:
    """The columns of an object's schema. Raises FormatError for one of anything else."""
    try:
        documents = {name: json.loads(referenced) for name, referenced in references.items()}
        found, _ = _Walk(json.loads(text), documents, place).type_of
    except ValueError as wrong:
        raise FormatError(f"{place} is not JSON: {wrong}") from None
    return found


class _Walk:
    def __init__(self, root: Any, documents: Mapping[str, Any], place: str) -> None:
        self.root = root
        self.place = place
        self.documents = {**_by_id(documents), **documents}
        self.base = str(root.get("$id", "")) if isinstance(root, dict) else ""
        self.open: list[str] = []

    @property
    def type_of(self) -> tuple[pa.DataType, bool]:
        return self.read(self.root)

    def read(self, schema: Any) -> tuple[pa.DataType, bool]:
        """The type, and whether null is allowed."""
        if not isinstance(schema, dict) or len(self.open) > DEPTH_MAX:
            return ANYTHING, True
        if "$ref" in schema:
            return self.referenced(str(schema["$ref"]))
        for name in ("oneOf", "anyOf"):
            if isinstance(schema.get(name), list) and "properties" not in schema:
                return self.alternatives(schema[name])
        if isinstance(schema.get("allOf"), list):
            return self.read(_merged(schema, [self.resolved(each) for each in schema["allOf"]]))
        kinds = schema.get("type")
        listed = [kinds] if isinstance(kinds, str) else list(kinds or _implied(schema))
        others = [kind for kind in listed if kind != "null"]
        nullable = "null" in listed or not listed
        if len(others) == 2 and set(others) == {"integer", "number"}:
            others = ["number"]
        return (self.single(others[0], schema) if len(others) == 1 else ANYTHING), nullable

    def single(self, kind: str, schema: Mapping[str, Any]) -> pa.DataType:
        if kind == "object":
            return self.object(schema)
        if kind == "array":
            element, nullable = self.read(schema.get("items"))
            return pa.list_(pa.field("item", element, nullable=nullable))
        told = schema.get("connect.type")
        if kind == "number" and str(schema.get("title", "")).lower().endswith(DECIMAL_TITLE):
            return _decimal(schema)
        if kind == "string":
            return CONNECT_TYPES["bytes"] if told == "bytes" else STRINGS.get(str(schema.get("format")), pa.string())
        if kind in ("integer", "number"):
            usual = pa.int64() if kind == "integer" else pa.float64()
            return CONNECT_TYPES.get(str(told), usual)
        return pa.bool_() if kind == "boolean" else ANYTHING

    def object(self, schema: Mapping[str, Any]) -> pa.DataType:
        properties, others = schema.get("properties"), schema.get("additionalProperties")
        if not properties:
            if not isinstance(others, dict):
                return ANYTHING
            item, nullable = self.read(others)
            return pa.map_(pa.string(), pa.field("value", item, nullable=nullable))
        # What is required today may be missing in what was written before: a column may always be null.
        return struct_of([pa.field(name, self.read(each)[0]) for name, each in properties.items()], place=self.place)

    def alternatives(self, schemas: list[Any]) -> tuple[pa.DataType, bool]:
        resolved = [self.resolved(each) for each in schemas]
        others = [raw for raw, each in zip(schemas, resolved, strict=True) if each.get("type") != "null"]
        if len(others) != 1:
            return ANYTHING, True
        kind, nullable = self.read(others[0])
        return kind, nullable or len(others) != len(schemas)

    def referenced(self, reference: str) -> tuple[pa.DataType, bool]:
        if reference in self.open:
            return ANYTHING, True  # a column's type can't hold itself
        self.open.append(reference)
        root = self.root
        try:
            document, found = self.found(reference)
            self.root = document
            return self.read(found)
        finally:
            self.root = root
            self.open.pop()

    def resolved(self, schema: Any) -> dict[str, Any]:
        if isinstance(schema, dict) and "$ref" in schema:
            schema = self.found(str(schema["$ref"]))[1]
        return schema if isinstance(schema, dict) else {}

    def found(self, reference: str) -> tuple[Any, Any]:
        name, fragment = urldefrag(reference)
        document = self.root
        if name and name != self.base:
            known = self.documents.get(name, self.documents.get(urljoin(self.base, name)))
            if known is None:
                raise FormatError(f"{self.place}: {reference} refers to a schema that is not among its references")
            document = known
        return document, _pointed(document, fragment)


def _pointed(document: Any, fragment: str) -> Any:
    found = document
    for step in filter(None, unquote(fragment).split("/")):
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and name.isdigit() and int(name) < len(found):
            found = found[int(name)]
        else:
            found = found.get(name) if isinstance(found, dict) else None
    return found


def _by_id(documents: Mapping[str, Any]) -> dict[str, Any]:
    return {str(each["$id"]): each for each in documents.values() if isinstance(each, dict) and "$id" in each}


def _implied(schema: Mapping[str, Any]) -> list[str]:
    """Without `type`, what only one type has says it; so do values that are listed."""
    if "properties" in schema:
        return ["object"]
    if "items" in schema:
        return ["array"]
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return ["string"] if values and all(isinstance(value, str) for value in values) else []


def _merged(schema: Mapping[str, Any], parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Objects that are said in parts are one object with the members of all."""
    said = {name: value for name, value in schema.items() if name != "allOf"}
    properties: dict[str, Any] = {}
    whole: dict[str, Any] = {}
    for part in (*parts, said):
        properties |= part.get("properties", {})
        whole |= part
    return {**whole, "properties": properties} if properties else whole


def _decimal(schema: Mapping[str, Any]) -> pa.DataType:
    told = schema.get("connect.parameters") or {}
    try:
        return pa.decimal128(int(told.get("connect.decimal.precision", 38)), int(told.get("scale", 0)))
    except (ValueError, TypeError):
        return pa.float64()
