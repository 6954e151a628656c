"""librdkafka's clients in this process: quiet, and their errors as ours."""

from __future__ import annotations

import logging
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from moldau.rest.problems import illegal_state, no_partition
from moldau.web.errors import ApiError
from moldau.web.kafka_errors import AUTHENTICATION, KAFKA_BAD_REQUEST, KAFKA_ERROR, RETRIABLE, UNAVAILABLE, of_kafka

LOGGER = logging.getLogger(__name__)

_LOCAL = {
    KafkaError._AUTHENTICATION: AUTHENTICATION,
    KafkaError._TIMED_OUT: RETRIABLE,
    KafkaError._MSG_TIMED_OUT: RETRIABLE,
    KafkaError._TIMED_OUT_QUEUE: RETRIABLE,
    KafkaError._TRANSPORT: RETRIABLE,
    KafkaError._WAIT_COORD: RETRIABLE,
    KafkaError._RESOLVE: UNAVAILABLE,
    KafkaError._ALL_BROKERS_DOWN: UNAVAILABLE,
    KafkaError._INVALID_ARG: KAFKA_BAD_REQUEST,
    KafkaError._UNKNOWN_TOPIC: 40401,
}


def quiet() -> dict[str, Any]:
    """librdkafka writes to standard error by itself; what matters of it comes back from the call that fails."""
    silent = logging.getLogger(f"{__name__}.log")
    silent.disabled = True
    return {"log_level": 0, "logger": silent, "error_cb": _noted}


def _noted(error: KafkaError) -> None:
    LOGGER.debug("librdkafka: %s", error)


def problem_of_error(error: KafkaError) -> ApiError:
    code = error.code()
    if code > 0:
        return of_kafka(code, error.str())
    if code == KafkaError._UNKNOWN_PARTITION:
        return no_partition()
    if code == KafkaError._STATE:
        return illegal_state(error.str())
    return ApiError(_LOCAL.get(code, KAFKA_ERROR), error.str())


def is_transient(error: KafkaError) -> bool:
    """Of a consumer, which goes on trying: `error.retriable()` is true of producers' alone."""
    return problem_of_error(error).code in (RETRIABLE, UNAVAILABLE)


def problem_of(wrong: KafkaException) -> ApiError:
    return problem_of_error(wrong.args[0])
