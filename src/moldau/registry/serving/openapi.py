"""The OpenAPI document, made of the table of endpoints: what is not there is not answered, and the other way round."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from moldau.registry.bodies import ENTITY_TYPES, TAGGED_MAX
from moldau.registry.names import INT_MAX
from moldau.registry.serving.api import ACCEPTED, OFFERED
from moldau.registry.serving.table import NUMBER, Endpoint

ALWAYS = (401, 403, 404, 406, 408, 413, 422, 429, 431, 500, 503)
WITH_BODY = (400, 415)
WORDS = {
    400: "The body is no JSON", 401: "No login, or a wrong one", 403: "The user may not do this",
    404: "Not found: error codes 40401 to 40409", 406: "No media type that is offered", 408: "Too slow",
    409: "Incompatible: error code 40901", 413: "The body is too large", 415: "No media type that is read",
    422: "Not processable: error codes 42201 to 42211", 429: "Too many users of the cluster at a time",
    431: "The headers are too large",
    500: "The store, the leader or the way to it failed: error codes 50001 to 50004",
    503: "Too much at a time, or the cluster cannot be asked who this is",
}  # fmt: skip
TEXT: dict[str, Any] = {"type": "string"}
OBJECT: dict[str, Any] = {"type": "object"}
REFERENCE = {
    "type": "object",
    "properties": {"name": TEXT, "subject": TEXT, "version": {"type": "integer", "minimum": -1, "maximum": INT_MAX}},
    "required": ["name", "subject", "version"],
}
ENTITY = {
    "type": "object",
    "properties": {"entityPath": TEXT, "entityType": {"type": "string", "enum": [*ENTITY_TYPES]}},
    "required": ["entityPath", "entityType"],
}
TAGS = {
    "type": "object",
    "properties": {"schemaEntity": ENTITY, "tags": {"type": "array", "items": TEXT}},
    "required": ["schemaEntity", "tags"],
}
SCHEMA = {
    "type": "object",
    "properties": {
        "schema": TEXT,
        "schemaType": {"type": "string", "enum": ["AVRO", "JSON", "PROTOBUF"]},
        "references": {"type": "array", "items": REFERENCE},
        "metadata": OBJECT,
        "ruleSet": OBJECT,
        "schemaTagsToAdd": {"type": "array", "items": TAGS, "maxItems": TAGGED_MAX},
        "schemaTagsToRemove": {"type": "array", "items": TAGS, "maxItems": TAGGED_MAX},
    },
    "required": ["schema"],
}
COMPONENTS: dict[str, Any] = {
    "Anything": {},
    "Nothing": {},
    "Texts": {"type": "array", "items": TEXT},
    "Numbers": {"type": "array", "items": {"type": "integer"}},
    "Number": {"type": "integer"},
    "Schema": SCHEMA,
    "Registered": {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "version": {"type": "integer"}, "guid": TEXT},
        "required": ["id", "version", "guid"],
    },
    "Schemas": {"type": "array", "items": SCHEMA},
    "Verdict": {
        "type": "object",
        "properties": {"is_compatible": {"type": "boolean"}, "messages": {"type": "array", "items": TEXT}},
        "required": ["is_compatible"],
    },
    "Config": {"type": "object", "properties": {"compatibility": TEXT, "compatibilityLevel": TEXT}},
    "Mode": {"type": "object", "properties": {"mode": {"type": ["string", "null"]}}},
    "Tags": {
        "type": "object",
        "properties": {
            "newVersion": {"type": "integer", "minimum": -1, "maximum": INT_MAX},
            "tagsToAdd": {"type": "array", "items": TAGS, "maxItems": TAGGED_MAX},
            "tagsToRemove": {"type": "array", "items": TAGS, "maxItems": TAGGED_MAX},
            "metadata": OBJECT,
            "ruleSet": OBJECT,
            "rulesToMerge": OBJECT,
            "rulesToRemove": {"type": "array", "items": TEXT},
        },
    },
    "Error": {
        "type": "object",
        "properties": {"error_code": {"type": "integer"}, "message": TEXT},
        "required": ["error_code", "message"],
    },
}


def document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for each in endpoints:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Moldau schema registry", "version": "1"},
        "servers": [{"url": "/"}, {"url": "/contexts/{context}", "variables": {"context": {"default": ":.:"}}}],
        "paths": paths,
        "components": {
            "schemas": COMPONENTS,
            "securitySchemes": {"basic": {"type": "http", "scheme": "basic"}},
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    statuses = {*ALWAYS, *endpoint.refusals, *(WITH_BODY if endpoint.body else ())}
    success = (
        ("204", {"description": "Done"})
        if endpoint.reply == "Nothing"
        else ("200", {"description": "Done", "content": _content(endpoint.reply, OFFERED)})
    )
    found: dict[str, Any] = {
        "summary": endpoint.summary,
        "parameters": [*_of_path(endpoint.path), *(_of_query(*each) for each in endpoint.parameters)],
        "responses": dict([success]) | {str(each): _refusal(each) for each in sorted(statuses)},
    }
    if endpoint.body is not None:
        found["requestBody"] = {"required": True, "content": _content(endpoint.body, sorted(ACCEPTED & {*OFFERED}))}
    return found


def _content(name: str, types: Iterable[str]) -> dict[str, Any]:
    return {each: {"schema": {"$ref": f"#/components/schemas/{name}"}} for each in types}


def _refusal(status: int) -> dict[str, Any]:
    return {"description": WORDS[status], "content": _content("Error", (*OFFERED,))}


def _of_path(path: str) -> list[dict[str, Any]]:
    names = re.findall(r"{(\w+)}", path)
    return [{"name": each, "in": "path", "required": True, "schema": _path_schema(each)} for each in names]


def _path_schema(name: str) -> dict[str, Any]:
    return {"type": "integer", "minimum": 0, "maximum": INT_MAX} if name == "id" else {"type": "string", "minLength": 1}


def _of_query(name: str, kind: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": kind}
    if kind == NUMBER:
        schema |= {"minimum": -1, "maximum": INT_MAX}
    return {"name": name, "in": "query", "required": False, "schema": schema}
