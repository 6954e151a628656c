"""Configurations, modes, contexts, and what the registry says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from moldau.registry import refusals
from moldau.registry.bodies import config_body, mode_body
from moldau.registry.deciding.settings import (
    decide_config,
    decide_config_deletion,
    decide_context_deletion,
    decide_mode,
    decide_mode_deletion,
)
from moldau.registry.names import GLOBAL_CONTEXT, checked, context_of, normalized
from moldau.registry.records import Settings
from moldau.registry.rights import ADMIN, CONFIGURE, READ, Right
from moldau.registry.serving.api import NOTHING, Api
from moldau.registry.serving.showing import page, shown_change
from moldau.registry.serving.table import PAGE, TEXT, Endpoint, flags
from moldau.schemas.subjects import DEFAULT_CONTEXT
from moldau.web.requests import flag, json_body, path_value

API_LEVEL = "8.0.0"  # of Confluent's registry: what clients may expect


@dataclass(frozen=True, slots=True)
class SettingsEndpoints:
    api: Api

    def endpoints(self) -> list[Endpoint]:
        own = flags("defaultToGlobal")
        found = []
        for path, missing in (("", ()), ("/{subject}", (404,))):
            found += [
                Endpoint("GET", f"/config{path}", "Configuration", self.config, own, None, missing, "Config"),
                Endpoint("PUT", f"/config{path}", "Change it", self.set_config, (), "Config", (422,), "Config",
                         is_written=True),
                Endpoint("DELETE", f"/config{path}", "Take it away", self.delete_config, (), None, (*missing, 422),
                         "Config", is_written=True),
                Endpoint("GET", f"/mode{path}", "Mode", self.mode, own, None, missing, "Mode"),
                Endpoint("PUT", f"/mode{path}", "Set it", self.set_mode, flags("force"), "Mode", (422,), "Mode",
                         is_written=True),
                Endpoint("DELETE", f"/mode{path}", "Take it away", self.delete_mode, flags("recursive"), None,
                         (*missing, 422), "Mode", is_written=True),
            ]  # fmt: skip
        return [
            *found,
            Endpoint("GET", "/contexts", "Contexts", self.contexts, (("contextPrefix", TEXT), *PAGE), reply="Texts"),
            Endpoint("DELETE", "/contexts/{context}", "Delete an empty context", self.delete_context, (), None,
                     (404, 422), "Nothing", is_written=True),
            Endpoint("GET", "/v1/metadata/id", "The clusters' ids", self.cluster),
            Endpoint("GET", "/v1/metadata/version", "The version", self.version),
            Endpoint("GET", "/v1/metadata/deployment", "How it is deployed", self.deployment),
            Endpoint("GET", "/", "Nothing", self.root),
            Endpoint("POST", "/", "Nothing", self.root),
        ]  # fmt: skip

    async def _scope(self, request: Request, right: Right, *, is_changed: bool = False) -> str | None:
        """The subject of the path; None for all, whose settings only administrators change."""
        if "subject" not in request.path_params:
            await self.api.require(request, ADMIN if is_changed else READ, "")
            return None
        name = path_value(request, "subject")
        subject = checked(name, has_settings=True) if is_changed else normalized(name)
        is_of_all = context_of(subject) == GLOBAL_CONTEXT
        await self.api.require(request, ADMIN if is_changed and is_of_all else right, subject)
        return subject

    async def config(self, request: Request) -> Settings:
        subject, state = await self._scope(request, READ), self.api.state
        if subject is None or flag(request, "defaultToGlobal"):
            return state.config(subject)
        if subject not in state.configs:
            raise refusals.no_own_level(subject)
        return state.configs[subject]

    async def set_config(self, request: Request) -> Settings:
        subject = await self._scope(request, CONFIGURE, is_changed=True)
        changes = config_body(await json_body(request))
        return shown_change(await self.api.registry.write(lambda state: decide_config(state, subject, changes)))

    async def delete_config(self, request: Request) -> Settings:
        subject = await self._scope(request, CONFIGURE, is_changed=True)
        return await self.api.registry.write(lambda state: decide_config_deletion(state, subject))

    async def mode(self, request: Request) -> dict[str, str]:
        subject, state = await self._scope(request, READ), self.api.state
        if subject is None or flag(request, "defaultToGlobal"):
            return {"mode": state.mode(subject)}
        if subject not in state.modes:
            raise refusals.no_own_mode(subject)
        return {"mode": state.modes[subject]}

    async def set_mode(self, request: Request) -> dict[str, str | None]:
        subject = await self._scope(request, ADMIN, is_changed=True)
        mode, forced = mode_body(await json_body(request)), flag(request, "force")
        self._check_may_change()
        found = await self.api.registry.write(lambda state: decide_mode(state, subject, mode, is_forced=forced))
        return {"mode": found}

    async def delete_mode(self, request: Request) -> dict[str, str | None]:
        subject, recursive = await self._scope(request, ADMIN, is_changed=True), flag(request, "recursive")
        self._check_may_change()
        found = await self.api.registry.write(
            lambda state: decide_mode_deletion(state, subject, is_recursive=recursive)
        )
        return {"mode": found}

    def _check_may_change(self) -> None:
        if not self.api.registry.settings.may_change_modes:
            raise refusals.not_permitted("Mode changes are not allowed")

    async def contexts(self, request: Request) -> list[str]:
        state, prefix = self.api.state, request.query_params.get("contextPrefix", "")
        may = await self.api.rights.judged(request, READ, ["", *state.names])
        allowed = state.contexts
        if not may(""):
            allowed = {context_of(each) for each in state.names if may(each)}
        return page(request, sorted(each for each in {*allowed, DEFAULT_CONTEXT} if each.startswith(prefix)))

    async def delete_context(self, request: Request) -> Any:
        name = path_value(request, "context")
        context = context_of(name) if name.startswith(":") else name
        await self.api.require(request, ADMIN, f":{context}:")
        await self.api.registry.write(lambda state: decide_context_deletion(state, context))
        return NOTHING

    async def cluster(self, _: Request) -> dict[str, Any]:
        clusters = {"kafka-cluster": self.api.cluster_id, "schema-registry-cluster": self.api.registry.settings.group}
        return {"id": "", "scope": {"path": [], "clusters": clusters}}

    async def version(self, _: Request) -> dict[str, str]:
        return {"version": API_LEVEL, "commitId": "moldau"}

    async def deployment(self, _: Request) -> dict[str, list[str]]:
        return {"attributes": []}

    async def root(self, _: Request) -> dict[str, str]:
        return {}
