"""The registry's endpoints as one application, with what the other HTTP servers have, too."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from moldau.core.exposition import COUNTER, Exposition
from moldau.registry.serving.api import Api
from moldau.registry.serving.contexts import ContextPaths
from moldau.registry.serving.openapi import document
from moldau.registry.serving.reading import Reading
from moldau.registry.serving.settings import SettingsEndpoints
from moldau.registry.serving.table import Endpoint
from moldau.registry.serving.writing import Writing
from moldau.web.application import Surroundings, application, route


def endpoints_of(api: Api) -> list[Endpoint]:
    # In this order: `/schemas/types` comes before what has a name in that place.
    return [*Reading(api).endpoints(), *Writing(api).endpoints(), *SettingsEndpoints(api).endpoints()]


def registry_application(api: Api, around: Surroundings) -> ASGIApp:
    endpoints = endpoints_of(api)
    described = document(endpoints)

    async def openapi(_: Request) -> Response:
        return JSONResponse(described)

    paths: dict[str, dict[str, Endpoint]] = {}
    for each in endpoints:
        paths.setdefault(each.path, {})[each.method] = each
    routes = [_route(api, path, by_method) for path, by_method in paths.items()]
    return ContextPaths(application([*routes, route("/openapi.json", openapi)], around))


def _route(api: Api, path: str, by_method: dict[str, Endpoint]) -> Route:
    """One for all methods, so that another method is told which there are."""

    async def respond(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await api.respond(by_method[method], request)

    return route(path, respond, *by_method)


def expose(api: Api, found: Exposition) -> None:
    registry, state = api.registry, api.state
    found.add("moldau_registry_subjects", "Subjects, those that are deleted softly too", {}, len(state.names))
    versions = sum(len(each) for each in state.subjects.values())
    found.add("moldau_registry_versions", "Versions of all subjects", {}, versions)
    found.add("moldau_registry_is_leader", "Whether this instance writes", {}, int(registry.is_leading))
    found.add("moldau_registry_offset", "Up to where the topic is read", {}, registry.offset)
    found.add("moldau_registry_writes_total", "Decisions that were written", {}, registry.writes, COUNTER)
