"""What a request is refused with: Confluent's number for the reason, which begins with the HTTP status or is it."""

from __future__ import annotations

from moldau.web.errors import ApiError
from moldau.web.kafka_errors import ILLEGAL_STATE


def bad_request(message: str) -> ApiError:
    return ApiError(400, message)


def no_topic(name: str) -> ApiError:
    return ApiError(40401, f"Topic {name} not found.")


def no_partition() -> ApiError:
    return ApiError(40402, "Partition not found.")


def no_instance() -> ApiError:
    return ApiError(40403, "Consumer instance not found.")


def not_found(what: str, name: object) -> ApiError:
    return ApiError(404, f"{what} {name} cannot be found.")


def illegal_state(message: str) -> ApiError:
    return ApiError(ILLEGAL_STATE, f"Illegal state: {message}")


def unprocessable(message: str, code: int = 422) -> ApiError:
    return ApiError(code, message)


def invalid_payload(message: str) -> ApiError:
    return ApiError(42206, f"Payload error. {message}")
