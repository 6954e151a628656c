"""Resources of v3: what each is, where it is, and what it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from starlette.responses import Response

from moldau.rest.calls import Call, Json, answer
from moldau.rest.threads import in_thread


@dataclass(frozen=True, slots=True)
class Resources:
    """Of one cluster, for one request: links lead to where the client came from."""

    call: Call
    cluster_id: str
    root: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", self.call.url("v3", "clusters", self.cluster_id))

    def url(self, *parts: object) -> str:
        return "/".join((self.root, *(quote(str(each), safe="") for each in parts)))

    def link(self, *parts: object) -> Json:
        return {"related": self.url(*parts)}

    def resource(self, kind: str, path: Sequence[object], name: Sequence[object], /, **fields: object) -> Json:
        """`name` are pairs, such as topic and orders, and perhaps a word at the end."""
        return {
            "kind": kind,
            "metadata": {"self": self.url(*path), "resource_name": self.name(*name)},
            "cluster_id": self.cluster_id,
            **fields,
        }

    def collection(self, kind: str, path: Sequence[object], data: Sequence[Json], *, query: str = "") -> Json:
        return {"kind": kind, "metadata": {"self": self.url(*path) + query, "next": None}, "data": [*data]}

    async def listed(self, kind: str, path: Sequence[object], data: Callable[[], Iterable[Json]]) -> Response:
        """An answer that may have tens of thousands of resources: they are made in a thread, which takes seconds."""
        threads = self.call.proxy.threads.asking
        return await in_thread(threads, lambda: answer(self.collection(kind, path, [*data()])))

    def name(self, *parts: object) -> str:
        words = ["kafka", self.cluster_id, *parts]
        pairs = ["=".join(quote(str(each), safe="") for each in words[at : at + 2]) for at in range(0, len(words), 2)]
        return f"crn://{self.call.proxy.settings.resource_name_authority}/" + "/".join(pairs)


async def resources_of(call: Call) -> Resources:
    return Resources(call, await call.check_cluster())
