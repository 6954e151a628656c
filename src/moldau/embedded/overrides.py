"""Configuration keys and values that a program hands to its broker."""

from __future__ import annotations

from collections.abc import Mapping


def as_property(value: object) -> str:
    """A value as a properties file spells it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def check_overrides(overrides: Mapping[str, object]) -> None:
    """Raise ValueError for a key that brokers do not have; a misspelt one would change nothing, silently."""
    if not overrides:
        return
    from moldau.core.config.older_names import RENAMED
    from moldau.core.config.settings import is_known, suggestion

    for key in overrides:
        if key in RENAMED or not is_known(key):
            meant = RENAMED.get(key) or suggestion(key) or suggestion(key.replace("_", ".").lower())
            hint = f"; did you mean {meant!r}?" if meant else ""
            raise ValueError(f"{key!r} is no configuration key of a broker{hint}")
