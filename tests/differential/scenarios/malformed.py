"""Every request of every version with null arrays, cut short, too long or with tags that nobody knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.differential import schema
from tests.differential.scenarios.cluster import PROMISED
from tests.differential.world import World


def requests() -> Iterator[tuple[str, int]]:
    for api in PROMISED:
        for version in schema.versions(api):
            yield api, version


def fate(world: World, api: str, version: int, note: str, body: bytes) -> None:
    """Only whether there is an answer: what is in it belongs to other scenarios."""
    world.peer.send_request(api, version, body)
    answer = world.peer.answer(api, version)
    if isinstance(answer, str):
        world.peer.reconnect()
    world.note(f"{api} v{version} {note}", answer if isinstance(answer, str) else "answered")


def harmless(api: str) -> dict[str, Any]:
    """A request with nothing in it that is answered at once."""
    return {"acks": -1} if api == "Produce" else {}


def null_arrays(world: World) -> None:
    for api, version in requests():
        for field in schema.schemas()[api + "Request"]["fields"]:
            if not field["type"].startswith("[]") or version not in schema.span_of(field["versions"]):
                continue
            name = schema.snake(field["name"])
            body = schema.encode(api + "Request", version, harmless(api) | {name: None})
            fate(world, api, version, f"{name} null", body)


def cut_short(world: World) -> None:
    for api, version in requests():
        body = schema.encode(api + "Request", version, harmless(api))
        if body:
            fate(world, api, version, "without its last byte", body[:-1])


def with_bytes_behind(world: World) -> None:
    for api, version in requests():
        body = schema.encode(api + "Request", version, harmless(api))
        fate(world, api, version, "three bytes behind", body + b"\1\2\3")


def with_unknown_tags(world: World) -> None:
    for api, version in requests():
        if schema.is_flexible(api + "Request", version):
            body = schema.encode(api + "Request", version, harmless(api))
            assert body.endswith(b"\0"), "no tags but the defaults"
            fate(world, api, version, "two unknown tags", body[:-1] + b"\2\x60\1x\x61\0")
            fate(world, api, version, "tags out of order", body[:-1] + b"\2\x61\0\x60\1x")
            fate(world, api, version, "a tag beyond the end", body[:-1] + b"\1\x60\x7fx")


SCENARIOS = (null_arrays, cut_short, with_bytes_behind, with_unknown_tags)
