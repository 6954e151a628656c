"""The document itself: true, because it is made from what is routed."""

from __future__ import annotations

import re
from collections.abc import Iterable

import moldau.rest.openapi.schemas as s
from moldau.rest.calls import Json
from moldau.rest.operations import Operation
from moldau.rest.settings import Authentication, RestSettings
from moldau.web.negotiation import JSON

VERSION = "3.1.0"
NUMBERS = ("partition_id", "broker_id")
ALWAYS = (400, 403, 404, 413, 422, 429)
SAID = {
    200: "Done", 201: "Made", 204: "Done", 207: "Done, entry by entry", 400: "The request makes no sense",
    401: "Nobody has said who this is", 403: "Not allowed", 404: "There is no such thing", 406: "In no such format",
    408: "A record is not in the format it should have", 409: "Not in this state", 413: "Too large",
    415: "No such media type", 422: "The content does not fit", 429: "Too much at once",
}  # fmt: skip


def document(operations: Iterable[Operation], settings: RestSettings) -> Json:
    has_logins = settings.authentication is not Authentication.NONE
    paths: Json = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, has_logins=has_logins)
    security = {"securitySchemes": {"basic": {"type": "http", "scheme": "basic"}}} if has_logins else {}
    return {
        "openapi": VERSION,
        "info": {
            "title": "Moldau REST proxy",
            "version": "3",
            "description": "Confluent's v2 and v3, and reading topics as streams.",
        },
        **({"security": [{"basic": []}]} if has_logins else {}),
        "paths": paths,
        "components": {"schemas": {**s.V3, **s.V2}, **security},
    }


def _operation(operation: Operation, *, has_logins: bool) -> Json:
    errors = sorted({*ALWAYS, *operation.errors, *([401] if has_logins else [])})
    error = {JSON: {"schema": s.ref("Error")}}
    responses: Json = {str(each): {"description": SAID[each], "content": error} for each in errors}
    responses["5XX"] = {"description": "The cluster cannot do it now", "content": error}
    for status, schema in operation.success.items():
        responses[str(status)] = _answer(operation, status, schema)
    found: Json = {
        "operationId": operation.id,
        "summary": operation.summary,
        "tags": ["v3" if operation.path.startswith("/v3") else "v2"],
        "parameters": _parameters(operation),
        "responses": dict(sorted(responses.items())),
    }
    if operation.body is not None:
        content = {kind: {"schema": s.ref(operation.body)} for kind in operation.body_types}
        found["requestBody"] = {"required": operation.is_body_needed, "content": content}
    return found


def _answer(operation: Operation, status: int, schema: str | None) -> Json:
    if status == 204:
        return {"description": SAID[status]}
    content = {} if schema is None else {"schema": s.ref(schema)}
    return {"description": SAID[status], "content": dict.fromkeys(operation.answer_types, content)}


def _parameters(operation: Operation) -> list[Json]:
    names = re.findall(r"{(\w+)}", operation.path)
    in_path: list[Json] = [
        {"name": each, "in": "path", "required": True, "schema": s.INTEGER if each in NUMBERS else s.NAME}
        for each in names
    ]
    return in_path + [
        {
            "name": each.name,
            "in": each.place,
            "required": False,
            "schema": each.schema,
            **({"description": each.description} if each.description else {}),
        }
        for each in operation.parameters
    ]
