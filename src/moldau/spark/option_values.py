"""Options read into values, whatever the case of their names; what does not fit is told with what is allowed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping

from moldau.spark.registry_names import is_about_registries

DURATION_MS = {"us": 0.001, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


class OptionError(ValueError):
    """An option that cannot be meant."""


class MissingTopic(OptionError):
    """A topic that is not there, and may be there later: somebody else may be about to make it."""


def wrong_option(name: str, value: str, allowed: str) -> OptionError:
    return OptionError(f"option {name} = {value!r}: {allowed}")


class OptionValues:
    """Reads options by the names that the documentation gives them; Spark hands them over in lower case."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.by_name = {name.lower(): value for name, value in options.items()}

    def text(self, name: str) -> str | None:
        value = self.by_name.get(name.lower())
        return None if value is None else value.strip()

    def given(self, names: Collection[str]) -> list[str]:
        return [name for name in names if name.lower() in self.by_name]

    def boolean(self, name: str, *, default: bool) -> bool:
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in ("true", "false"):
            raise wrong_option(name, value, "allowed are true and false")
        return value.lower() == "true"

    def positive(self, name: str) -> int | None:
        number = self._number(name, "allowed is a whole number above 0")
        if number == 0:
            raise wrong_option(name, str(self.text(name)), "allowed is a whole number above 0")
        return number

    def whole(self, name: str) -> int | None:
        return self._number(name, "allowed is a whole number from 0")

    def _number(self, name: str, allowed: str) -> int | None:
        value = self.text(name)
        if value is None:
            return None
        if not re.fullmatch(r"\+?[0-9]{1,18}", value):
            raise wrong_option(name, value, allowed)
        return int(value)

    def choice(self, name: str, allowed: Collection[str], *, default: str) -> str:
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in allowed:
            raise wrong_option(name, value, f"allowed are {', '.join(allowed)}")
        return value.lower()

    def duration_ms(self, name: str, *, default: int) -> int:
        """`15m`, `90s`, `500ms`; a number alone is milliseconds."""
        value = self.text(name)
        if value is None:
            return default
        matched = re.fullmatch(r"([0-9]{1,15})\s*([a-z]*)", value.lower())
        if matched is None or (matched[2] or "ms") not in DURATION_MS:
            raise wrong_option(name, value, f"allowed is a number and one of {', '.join(DURATION_MS)}, as in 15m")
        return int(int(matched[1]) * DURATION_MS[matched[2] or "ms"])

    def refuse_misspelled(self, known: Collection[str]) -> None:
        """Spark puts options of its own among ours, so only what looks like one of ours is refused."""
        lowered = {name.lower(): name for name in known}
        for name in self.by_name:
            if name in lowered or name.startswith("kafka.") or is_about_registries(name):
                continue
            meant = difflib.get_close_matches(name, lowered, n=1, cutoff=0.88)
            if meant:
                raise OptionError(f"option {name}: there is no such option; {lowered[meant[0]]} was probably meant")
