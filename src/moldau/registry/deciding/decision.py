"""What a decision is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from moldau.registry.records import Entry

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Decision(Generic[R]):
    """The entries are written in order, and then the reply is true."""

    entries: tuple[Entry, ...]
    reply: R
