"""Avro schemas from a seed, small and close to each other, so that pairs of them are compatible about half the time."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

from moldau.schemas import avro
from moldau.schemas.model import InvalidSchema

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
NAMES = ("A", "B", "n.A", "n.B", "m.A")
_DEFAULTS: dict[str, tuple[Any, ...]] = {
    "null": (None,), "boolean": (True,), "int": (0, -7), "long": (2**40,), "float": (1.5, 2), "double": (1e10, 3, -0.0),
    "bytes": ("\u00ff",), "string": ("", "é\n"),
}  # fmt: skip


@dataclass(slots=True)
class Maker:
    chance: random.Random
    defined: set[str] = field(default_factory=set)

    def schema(self, depth: int = 3) -> Any:
        kinds = ["primitive"] * 3 + ["name", "annotated"]
        if depth:
            kinds += ["record"] * 4 + ["array", "map", "union", "union", "enum", "fixed"]
        kind = self.chance.choice(kinds)
        if kind == "name" and self.defined:
            return self.chance.choice(sorted(self.defined))
        if kind == "annotated":
            return {"type": self.chance.choice(PRIMITIVES), "z": 1, "logicalType": "date", "a": {"y": 1.0, "b": [None]}}
        if kind in ("record", "enum", "fixed"):
            return self._named(kind, depth)
        if kind == "array":
            return {"type": "array", "items": self.schema(depth - 1)}
        if kind == "map":
            return {"type": "map", "values": self.schema(depth - 1)}
        return self._union(depth) if kind == "union" else self.chance.choice(PRIMITIVES)

    def _union(self, depth: int) -> list[Any]:
        branches: dict[str, Any] = {}
        for _ in range(self.chance.randint(1, 4)):
            branch = self.schema(depth - 1)
            if not isinstance(branch, list):
                branches.setdefault(self._branch_name(branch), branch)
        return list(branches.values())

    def _branch_name(self, branch: Any) -> str:
        if isinstance(branch, str):
            return branch
        return self._full_name(branch) if "name" in branch else str(branch["type"])

    def _full_name(self, node: dict[str, Any]) -> str:
        space = node.get("namespace", "")
        return f"{space}.{node['name']}" if space else str(node["name"])

    def _named(self, kind: str, depth: int) -> Any:
        free = [name for name in NAMES if name not in self.defined]
        if not free:
            return "int"
        full_name = self.chance.choice(free)
        self.defined.add(full_name)
        space, _, name = full_name.rpartition(".")
        # The namespace is always said, so that no name depends on what it stands in.
        node: dict[str, Any] = {"type": kind, "name": name, "namespace": space}
        if self.chance.random() < 0.3:
            node["aliases"] = self.chance.sample(["A", "B", "n.A", "x.Y"], 2)
        if self.chance.random() < 0.2:
            node["doc"] = "of it"
        if kind == "fixed":
            return node | {"size": self.chance.choice((1, 1, 2))}
        if kind == "enum":
            symbols = self.chance.sample("XYZ", self.chance.randint(1, 3))
            return node | {"symbols": symbols} | ({"default": symbols[0]} if self.chance.random() < 0.3 else {})
        fields = self.chance.sample("abcd", self.chance.randint(0, 3))
        return node | {"fields": [self._field(each, depth) for each in fields]}

    def _field(self, name: str, depth: int) -> dict[str, Any]:
        type_ = self.schema(depth - 1)
        made: dict[str, Any] = {"name": name, "type": type_}
        if isinstance(type_, str) and type_ in _DEFAULTS and self.chance.random() < 0.5:
            made["default"] = self.chance.choice(_DEFAULTS[type_])
        if self.chance.random() < 0.2:
            made["aliases"] = [self.chance.choice("abcd")]
        if self.chance.random() < 0.2:
            made["order"] = self.chance.choice(("ascending", "descending", "ignore"))
        return made


def any_text(chance: random.Random) -> str:
    """Mostly a schema; sometimes a definition was left out that others name."""
    return json.dumps(Maker(chance).schema())


def schema_text(chance: random.Random) -> str:
    while True:
        text = any_text(chance)
        try:
            avro.parse(text)
        except InvalidSchema:
            continue
        return text
