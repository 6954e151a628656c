"""What stands at the cursor: the words before it, gone through as argparse would."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from moldau.cli.completion.shapes import MANY, Argument, Shape

# An option that nobody here knows, and that may be one of an action that comes later.
UNKNOWN = Argument([], "", 1, 1, "", [], "", "", "", repeats=True)


class Place(NamedTuple):
    """`value` is one of an argument, behind `before`; else options and actions fit, or nothing."""

    value: Argument | None
    before: str
    begun: str
    options: list[Argument]
    actions: Mapping[str, str]
    given: Mapping[str, list[str]]


class Walk:
    def __init__(self, shape: Shape, more: Shape | None = None) -> None:
        """`more` are options that may stand before an action, whose they are."""
        self.shape = shape
        self.given: dict[str, list[str]] = {}
        self._more = more.arguments if more else []
        self._open: Argument | None = None
        self._taken = 0
        self._words = 0
        self._position = 0
        self._only_words = False

    def take(self, word: str) -> None:
        is_option = word.startswith("-") and word != "-" and not self._only_words
        if self._open is not None and (self._taken < self._open.least or not is_option):
            self._give(self._open, word)
            self._taken += 1
            if self._taken >= self._open.most:
                self._open = None
        elif word == "--" and not self._only_words:
            self._only_words = True
            self._open = None
        elif is_option:
            self._open = None
            self._take_option(word)
        else:
            self._take_word(word)

    def place(self, begun: str) -> Place:
        is_option = begun.startswith("-") and not self._only_words
        if self._open is not None and (self._taken < self._open.least or not is_option):
            return self._value(self._open, "", begun)
        if is_option:
            name, equals, value = begun.partition("=")
            known = self._known(name) if equals and name.startswith("--") else None
            if known is not None and known.most:
                return self._value(known, f"{name}=", value)
            return self._place(begun, options=self._unused())
        if self.shape.actions:
            return self._place(begun, actions={name: told for name, (told, _) in self.shape.actions.items()})
        standing = self._standing()
        if standing is not None:
            return self._value(standing, "", begun)
        return self._place(begun, options=self._unused())

    def _place(self, begun: str, *, options: list[Argument] | None = None, actions: Mapping[str, str] = {}) -> Place:
        return Place(None, "", begun, options or [], actions, self.given)

    def _value(self, argument: Argument, before: str, begun: str) -> Place:
        return Place(argument, before, begun, [], {}, self.given)

    def _take_option(self, word: str) -> None:
        name, equals, value = word.partition("=")
        is_long = name.startswith("--")
        known = self._known(name if is_long else word[:2])
        if known is None:
            # As the tools do: options before the action have values.
            self._open, self._taken = (UNKNOWN, 0) if self.shape.actions and not equals else (None, 0)
            return
        attached = value if is_long and equals else word[2:] if not is_long and len(word) > 2 else None
        if attached is not None and known.most:
            self._give(known, attached)
        else:
            self.given.setdefault(known.dest, [])
            self._open, self._taken = (known, 0) if known.most else (None, 0)

    def _known(self, name: str) -> Argument | None:
        all_of_them = [each for each in (*self.shape.arguments, *self._more) if each.names]
        exact = next((each for each in all_of_them if name in each.names), None)
        if exact is not None or not name.startswith("--"):
            return exact
        return next((each for each in all_of_them if any(other.startswith(name) for other in each.names)), None)

    def _take_word(self, word: str) -> None:
        if self.shape.actions:
            if word in self.shape.actions:
                self.shape = self.shape.actions[word][1]
            return
        standing = self._standing()
        if standing is not None:
            self._give(standing, word)
            self._words += 1
            if self._words >= standing.most:
                self._position, self._words = self._position + 1, 0

    def _standing(self) -> Argument | None:
        standing = [each for each in self.shape.arguments if not each.names]
        return standing[self._position] if self._position < len(standing) else None

    def _unused(self) -> list[Argument]:
        """An option that is given need not be offered again, unless it may be repeated."""
        found = [each for each in self.shape.arguments if each.names]
        names = {name for each in found for name in each.names}
        found += [each for each in self._more if not names.intersection(each.names)]
        return [each for each in found if each.repeats or each.most == MANY or each.dest not in self.given]

    def _give(self, argument: Argument, word: str) -> None:
        self.given.setdefault(argument.dest, []).append(word)
