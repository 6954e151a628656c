"""What the value of an argument is, said where the argument is made, as its metavar: `metavar=TOPIC`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum


class Kind(StrEnum):
    FILES = "files"
    FOLDERS = "folders"
    PROFILES = "profiles"
    TOPICS = "topics"
    PARTITIONS = "partitions"
    GROUPS = "groups"
    BROKERS = "brokers"
    USERS = "users"
    PRINCIPALS = "principals"
    TRANSACTIONAL_IDS = "transactional ids"
    TOPIC_CONFIGS = "topic configs"
    BROKER_CONFIGS = "broker configs"
    ENTITY_CONFIGS = "configs of the entity that the line names"
    ENTITIES = "names of the entity type that the line says"


class Completes(str):
    """A metavar that knows what stands there."""

    def __new__(
        cls, text: str, kind: Kind | None = None, *, words: Sequence[str] = (), separator: str = "", ending: str = ""
    ) -> Completes:
        """`words` are all there are, where no kind says more; lists have a `separator`, and `ending` follows a name."""
        made = super().__new__(cls, text)
        made.kind, made.words, made.separator, made.ending = kind, tuple(words), separator, ending
        return made

    kind: Kind | None
    words: tuple[str, ...]
    separator: str
    ending: str


_STATES = ("stable", "empty", "dead", "preparingrebalance", "completingrebalance", "assigning", "reconciling")
_TYPES = ("classic", "consumer", "share", "streams")
# Everywhere the same, so that their names are enough.
BY_NAME = {"FILE": Kind.FILES, "server.properties": Kind.FILES, "DIR": Kind.FOLDERS}
PROFILE = Completes("NAME", Kind.PROFILES)
TOPIC = Completes("TOPIC", Kind.TOPICS)
TOPIC_LIST = Completes("TOPIC,...", Kind.TOPICS, separator=",")
TOPIC_PARTITIONS = Completes("TOPIC[:0,1]", Kind.TOPICS)
PARTITION = Completes("N", Kind.PARTITIONS)
GROUP = Completes("GROUP", Kind.GROUPS)
BROKER = Completes("ID", Kind.BROKERS)
BROKER_LIST = Completes("ID,...", Kind.BROKERS, separator=",")
STATE = Completes("STATE", words=_STATES)
TYPE = Completes("TYPE", words=_TYPES)
USER = Completes("USER", Kind.USERS)
PRINCIPAL = Completes("TYPE:NAME", Kind.PRINCIPALS)
TRANSACTIONAL_ID = Completes("ID", Kind.TRANSACTIONAL_IDS)
TOPIC_SETTING = Completes("KEY=VALUE", Kind.TOPIC_CONFIGS, ending="=")
TOPIC_CONFIG = Completes("KEY", Kind.TOPIC_CONFIGS)
