"""What the cluster refused, as an answer: the number of Confluent's proxy for it, which begins with the HTTP status."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.client.cluster import words_of
from moldau.core.errors import ErrorCode
from moldau.web.errors import ApiError

KAFKA_BAD_REQUEST = 40002
AUTHENTICATION = 40101
AUTHORIZATION = 40301
UNKNOWN_TOPIC_OR_PARTITION = 40403
TOO_LARGE = 41301
ILLEGAL_STATE = 40903
THROTTLED = 42901
KAFKA_ERROR = 50002
RETRIABLE = 50003
UNAVAILABLE = 50302

_BY_CODE: Mapping[int, int] = {
    **dict.fromkeys(
        (
            ErrorCode.SASL_AUTHENTICATION_FAILED, ErrorCode.UNSUPPORTED_SASL_MECHANISM, ErrorCode.ILLEGAL_SASL_STATE,
        ),
        AUTHENTICATION,
    ),
    **dict.fromkeys(
        (
            ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED,
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        ),
        AUTHORIZATION,
    ),
    **dict.fromkeys(
        (
            ErrorCode.INVALID_REPLICATION_FACTOR, ErrorCode.SECURITY_DISABLED, ErrorCode.UNSUPPORTED_VERSION,
            ErrorCode.INVALID_PARTITIONS, ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_SERVER_ERROR,
            ErrorCode.POLICY_VIOLATION, ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.INVALID_CONFIG,
            ErrorCode.TOPIC_DELETION_DISABLED, ErrorCode.INVALID_TOPIC_EXCEPTION,
            # The client's mistakes as well, which Confluent's proxy answers with 500.
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, ErrorCode.INVALID_GROUP_ID, ErrorCode.INVALID_TIMESTAMP,
            ErrorCode.INVALID_RECORD, ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
            ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.INVALID_SESSION_TIMEOUT, ErrorCode.INVALID_PRINCIPAL_TYPE,
        ),
        KAFKA_BAD_REQUEST,
    ),
    **dict.fromkeys(
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID), UNKNOWN_TOPIC_OR_PARTITION
    ),
    # Of a consumer instance whose group went on without it.
    **dict.fromkeys(
        (
            ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS,
            ErrorCode.FENCED_INSTANCE_ID, ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ),
        ILLEGAL_STATE,
    ),
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: THROTTLED,
    ErrorCode.BROKER_NOT_AVAILABLE: UNAVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: 404,
    ErrorCode.MESSAGE_TOO_LARGE: TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE: TOO_LARGE,
    **dict.fromkeys(
        (
            ErrorCode.REQUEST_TIMED_OUT, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.NETWORK_EXCEPTION, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
            ErrorCode.NOT_CONTROLLER, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.OFFSET_NOT_AVAILABLE,
            ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.CORRUPT_MESSAGE,
            ErrorCode.REASSIGNMENT_IN_PROGRESS, ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ),
        RETRIABLE,
    ),
}  # fmt: skip


def of_kafka(code: int, told: str | None = None) -> ApiError:
    """A broker's error, as Confluent's proxy tells it."""
    return ApiError(_BY_CODE.get(code, KAFKA_ERROR), told or words_of(code))


def not_allowed_in() -> ApiError:
    return ApiError(AUTHENTICATION, "Unauthorized")


def too_many(message: str) -> ApiError:
    return ApiError(THROTTLED, message)
