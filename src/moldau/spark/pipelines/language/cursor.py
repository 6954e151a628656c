"""A place in a statement, and the questions that a grammar asks there."""

from __future__ import annotations

from enum import Enum
from typing import NoReturn, TypeVar

from moldau.spark.pipelines.language.tokens import Shape, Statement, Token
from moldau.spark.pipelines.plan import Location, PipelineError

E = TypeVar("E", bound=Enum)


class Cursor:
    def __init__(self, statement: Statement, source: str, file: str) -> None:
        last = statement.tokens[-1]
        self._tokens = (*statement.tokens, Token(Shape.END, "", last.line, last.end, last.end))
        self._at = 0
        self._source = source
        self._file = file

    @property
    def place(self) -> Location:
        return Location(self._file, self._next.line)

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    @property
    def is_done(self) -> bool:
        return self._next.shape is Shape.END

    def fails(self, expected: str) -> NoReturn:
        found = "the end of the statement" if self.is_done else repr(self._next.text)
        raise PipelineError(self.place, f"expected {expected}, found {found}")

    def accept(self, *words: str) -> bool:
        """True, and past them, if these words come next."""
        ahead = self._tokens[self._at : self._at + len(words)]
        if len(ahead) < len(words) or not all(token.is_word(word) for token, word in zip(ahead, words, strict=True)):
            return False
        self._at += len(words)
        return True

    def expect(self, *words: str) -> None:
        if not self.accept(*words):
            self.fails(" ".join(words).upper())

    def choice(self, kind: type[E], expected: str) -> E:
        """One of an enumeration's values, which may be several words."""
        found = next((one for one in kind if self.accept(*str(one.value).split())), None)
        return found or self.fails(expected)

    def accept_sign(self, sign: str) -> bool:
        if not self._next.is_sign(sign):
            return False
        self._at += 1
        return True

    def expect_sign(self, sign: str) -> None:
        if not self.accept_sign(sign):
            self.fails(repr(sign))

    def name(self, expected: str) -> str:
        if self._next.shape not in (Shape.WORD, Shape.NAME):
            self.fails(expected)
        return self._take()

    def name_or_text(self, expected: str) -> str:
        """As `name`, in quotes too."""
        return self._take() if self._next.shape is Shape.TEXT else self.name(expected)

    def text(self, expected: str) -> str:
        if self._next.shape is not Shape.TEXT:
            self.fails(f"{expected} in quotes")
        return self._take()

    def value(self, expected: str) -> str:
        """A text, or a word or number without quotes."""
        sign = "-" if self.accept_sign("-") else ""
        if self._next.shape not in (Shape.WORD, Shape.TEXT):
            self.fails(expected)
        return sign + self._take()

    def names(self) -> tuple[str, ...]:
        """`a`, or `(a, b)`."""
        if not self.accept_sign("("):
            return (self.name("a column's name"),)
        found = [self.name("a column's name")]
        while self.accept_sign(","):
            found.append(self.name("a column's name"))
        self.expect_sign(")")
        return tuple(found)

    def parenthesised(self) -> str:
        """The source between this parenthesis and its partner."""
        self.expect_sign("(")
        start, depth = self._next.start, 1
        while depth:
            if self.is_done:
                self.fails("')'")
            depth += self._next.is_sign("(") - self._next.is_sign(")")
            self._at += 1
        return self._source[start : self._tokens[self._at - 1].start].strip()

    def rest(self) -> str:
        """The source from here to the statement's end."""
        start = self._next.start
        self._at = len(self._tokens) - 1
        return self._source[start : self._tokens[-1].end]

    def end(self) -> None:
        if not self.is_done:
            self.fails("the end of the statement; is a ';' missing before it?")

    def _take(self) -> str:
        token = self._next
        self._at += 1
        return token.text
