from __future__ import annotations

from kio.schema.errors import ErrorCode as KioErrorCode

from moldau.core.errors import ApiError, ErrorCode, ProtocolViolation, Truncated


def test_the_codes_are_kafkas() -> None:
    assert {code.name: int(code) for code in ErrorCode} == {code.name.upper(): int(code) for code in KioErrorCode}


def test_every_code_has_a_message_of_its_own() -> None:
    assert len({code.message for code in ErrorCode}) == len(ErrorCode)
    assert ErrorCode(36).message == "Topic with this name already exists."


def test_an_api_error_says_what_its_code_says_unless_it_knows_better() -> None:
    assert ApiError(ErrorCode.INVALID_TIMESTAMP).message == ErrorCode.INVALID_TIMESTAMP.message
    assert str(ApiError(ErrorCode.INVALID_TIMESTAMP, "yesterday")) == "INVALID_TIMESTAMP: yesterday"


def test_truncated_bytes_violate_the_protocol() -> None:
    error = Truncated(needed=8, have=3)
    assert isinstance(error, ProtocolViolation)
    assert str(error) == "8 bytes needed, 3 there"
