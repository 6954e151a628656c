"""Which names a topic may have, and which of them would collide in the names of metrics."""

from __future__ import annotations

import re
from collections.abc import Container

from moldau.core.limits import TOPIC_NAME_CHARS_MAX

GROUP_METADATA_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
SHARE_GROUP_STATE_TOPIC = "__share_group_state"
CLUSTER_METADATA_TOPIC = "__cluster_metadata"

INTERNAL_TOPICS = frozenset({GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC})

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+\Z")


def topic_name_problem(name: str) -> str | None:
    """What is wrong with the name, in Kafka's words, or None."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > TOPIC_NAME_CHARS_MAX:
        return (
            f"Topic name is invalid: the length of '{name}' is longer than the max allowed length "
            f"{TOPIC_NAME_CHARS_MAX}"
        )
    if not _LEGAL.match(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    return None


def is_internal(name: str, internal: Container[str] = INTERNAL_TOPICS) -> bool:
    return name in internal


def may_collide(name: str) -> bool:
    return "_" in name or "." in name


def collision_key(name: str) -> str:
    """Metrics write '.' as '_', so two topics with the same key would share their metrics."""
    return name.replace(".", "_")
