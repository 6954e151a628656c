"""Names of subjects: of a topic's keys and values, of a reference, and in a context."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from moldau.schemas.model import InvalidValue

DEFAULT_CONTEXT = "."
CONTEXT_PREFIX = ":."
CONTEXT_WILDCARD = ":*:"


class SubjectNameStrategy(StrEnum):
    TOPIC_NAME = "TopicNameStrategy"
    RECORD_NAME = "RecordNameStrategy"
    TOPIC_RECORD_NAME = "TopicRecordNameStrategy"

    @classmethod
    def named(cls, name: str) -> SubjectNameStrategy:
        """By Java's class with or without its package, or by the short word of newer clients, such as TOPIC_RECORD."""
        last = name.strip().rpartition(".")[2]
        wanted = last.replace("_", "").lower().removesuffix("strategy").removesuffix("name")
        for strategy in cls:
            if strategy.value.removesuffix("NameStrategy").lower() == wanted:
                return strategy
        raise ValueError(f"unknown subject name strategy {name!r}; known are: {', '.join(cls)}")

    def subject(self, topic: str, is_key: bool, record_name: str | None) -> str:
        """The subject of a topic's keys or values. Raises InvalidValue for a schema without the name that it needs."""
        if self is SubjectNameStrategy.TOPIC_NAME:
            return f"{topic}-{'key' if is_key else 'value'}"
        if record_name is None:
            part = "key" if is_key else "value"
            raise InvalidValue(f"{self} names subjects after records, and the schema of the {part} is none")
        return record_name if self is SubjectNameStrategy.RECORD_NAME else f"{topic}-{record_name}"


class ReferenceSubjectNameStrategy(StrEnum):
    DEFAULT = "DefaultReferenceSubjectNameStrategy"
    QUALIFIED = "QualifiedReferenceSubjectNameStrategy"

    @classmethod
    def named(cls, name: str) -> ReferenceSubjectNameStrategy:
        wanted = name.strip().rpartition(".")[2].lower().removesuffix("referencesubjectnamestrategy")
        for strategy in cls:
            if strategy.name.lower() == wanted:
                return strategy
        raise ValueError(f"unknown reference subject name strategy {name!r}; known are: {', '.join(cls)}")

    def subject(self, name: str) -> str:
        """The subject of a schema that another one refers to by `name`, such as the path in an import."""
        if self is ReferenceSubjectNameStrategy.DEFAULT:
            return name
        return name.replace(".proto", "").replace("/", ".")


@dataclass(frozen=True, slots=True)
class QualifiedSubject:
    """A subject in its context: `orders-value` in the default one, `:.staging:orders-value` in another."""

    context: str
    subject: str

    @classmethod
    def parse(cls, name: str) -> QualifiedSubject:
        if name.startswith(CONTEXT_PREFIX):
            context, _, subject = name[1:].partition(":")
            return cls(context, subject)
        if name.startswith(CONTEXT_WILDCARD):
            return cls("*", name.removeprefix(CONTEXT_WILDCARD))
        return cls(DEFAULT_CONTEXT, name)

    def __str__(self) -> str:
        return self.subject if self.context == DEFAULT_CONTEXT else f":{self.context}:{self.subject}"
