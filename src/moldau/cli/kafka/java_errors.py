"""Error codes by the names of Java's exceptions, which Apache Kafka's own tools print, and scripts look for."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from moldau.client.cluster import Refused
from moldau.core.errors import ErrorCode

PACKAGE = "org.apache.kafka.common.errors"
_IRREGULAR: Mapping[ErrorCode, str] = MappingProxyType(
    {
        ErrorCode.UNKNOWN_SERVER_ERROR: "UnknownServerException",
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "ClusterAuthorizationException",
        ErrorCode.GROUP_AUTHORIZATION_FAILED: "GroupAuthorizationException",
        ErrorCode.INVALID_TOPIC_EXCEPTION: "InvalidTopicException",
        ErrorCode.NON_EMPTY_GROUP: "GroupNotEmptyException",
        ErrorCode.REQUEST_TIMED_OUT: "TimeoutException",
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: "TopicAuthorizationException",
        ErrorCode.UNSTABLE_OFFSET_COMMIT: "UnstableOffsetCommitException",
    }
)


def java_error(wrong: Refused) -> str:
    """As an exception of Java's clients prints: its class and what it says."""
    return f"{PACKAGE}.{exception_name(wrong.code)}: {wrong}"


def exception_name(code: int) -> str:
    try:
        known = ErrorCode(code)
    except ValueError:
        return "UnknownServerException"
    return _IRREGULAR.get(known) or f"{known.name.title().replace('_', '')}Exception"
