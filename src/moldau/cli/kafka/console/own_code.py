"""A user's own code, named as `module:name` and found where Python finds modules, or in the current folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from moldau.cli.failures import UsageError


def is_own(name: str) -> bool:
    return ":" in name


def load(name: str, properties: Mapping[str, str], *, option: str) -> Callable[[Any], Any]:
    """A function as it is; a class is made with the properties, and its object is called."""
    module, _, attribute = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = getattr(import_module(module), attribute)
        called: Callable[[Any], Any] = found(dict(properties)) if isinstance(found, type) else found
    except Exception as wrong:  # whatever a user's code does when it is loaded
        raise UsageError(f"{option} {name}: {type(wrong).__name__}: {wrong}") from None
    if not callable(called):
        raise UsageError(f"{option} {name}: expected a function, or a class whose objects can be called")
    return called
