"""The exceptions that Java's clients make of error codes, which Apache Kafka's tools print."""

from __future__ import annotations

from types import MappingProxyType

from moldau.client.cluster import words_of
from moldau.core.errors import ErrorCode

_PACKAGE = "org.apache.kafka.common.errors"
# Those whose names are not that of their code.
_NAMES = MappingProxyType(
    {
        ErrorCode.UNKNOWN_SERVER_ERROR: "UnknownServerException",
        ErrorCode.CORRUPT_MESSAGE: "CorruptRecordException",
        ErrorCode.REQUEST_TIMED_OUT: "TimeoutException",
        ErrorCode.MESSAGE_TOO_LARGE: "RecordTooLargeException",
        ErrorCode.STALE_CONTROLLER_EPOCH: "ControllerMovedException",
        ErrorCode.OFFSET_METADATA_TOO_LARGE: "OffsetMetadataTooLarge",
        ErrorCode.RECORD_LIST_TOO_LARGE: "RecordBatchTooLargeException",
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: "TopicAuthorizationException",
        ErrorCode.GROUP_AUTHORIZATION_FAILED: "GroupAuthorizationException",
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "ClusterAuthorizationException",
        ErrorCode.TOPIC_ALREADY_EXISTS: "TopicExistsException",
        ErrorCode.INVALID_CONFIG: "InvalidConfigurationException",
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "OutOfOrderSequenceException",
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER: "DuplicateSequenceException",
        ErrorCode.INVALID_PRODUCER_ID_MAPPING: "InvalidPidMappingException",
        ErrorCode.INVALID_TRANSACTION_TIMEOUT: "InvalidTxnTimeoutException",
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "TransactionalIdAuthorizationException",
        ErrorCode.KAFKA_STORAGE_ERROR: "KafkaStorageException",
        ErrorCode.SASL_AUTHENTICATION_FAILED: "SaslAuthenticationException",
        ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "DelegationTokenDisabledException",
        ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "UnsupportedByAuthenticationException",
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "DelegationTokenAuthorizationException",
        ErrorCode.NON_EMPTY_GROUP: "GroupNotEmptyException",
        ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE: "PrincipalDeserializationException",
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR: "FetchSessionTopicIdException",
        ErrorCode.INVALID_REGULAR_EXPRESSION: "InvalidRegularExpression",
    }
)


def exception_of(code: int) -> str:
    """The full name of the exception."""
    try:
        known = ErrorCode(code)
    except ValueError:
        known = ErrorCode.UNKNOWN_SERVER_ERROR
    name = _NAMES.get(known) or "".join(word.capitalize() for word in known.name.split("_"))
    return f"{_PACKAGE}.{name}" if known in _NAMES or name.endswith("Exception") else f"{_PACKAGE}.{name}Exception"


def thrown(code: int, message: str | None) -> str:
    """An exception as Java prints it."""
    return f"{exception_of(code)}: {message or words_of(code)}"
