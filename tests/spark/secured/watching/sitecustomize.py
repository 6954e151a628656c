"""Runs at the start of every Python process of Spark: notes which way each task reads and writes.

It must be on the path before any other module of this name, and SEEN name a file. What it watches is not imported
before somebody wants it: Spark gives a worker ten seconds to start.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

WATCHED = {
    "moldau.spark.reading.ranges": ("fetch_range", "read_by_library"),
    "moldau.spark.writing.delivery": ("opened_plainly", "opened_by_library", "write_plainly", "write_by_library"),
}


def watched(name: str, called: Callable[..., Any]) -> Callable[..., Any]:
    def note_and_call(*arguments: Any, **named: Any) -> Any:
        with open(os.environ["SEEN"], "a") as seen:
            seen.write(f"{name}\n")
        return called(*arguments, **named)

    return note_and_call


class WatchingLoader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        for name in WATCHED[module.__name__]:
            setattr(module, name, watched(name, getattr(module, name)))


class WatchingFinder:
    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name in WATCHED else None
        if spec is not None and spec.origin is not None:
            spec.loader = WatchingLoader(name, spec.origin)
        return spec


sys.meta_path.insert(0, WatchingFinder)
