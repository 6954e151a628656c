"""v2's media types: the format of records is part of them."""

from __future__ import annotations

from starlette.requests import Request

from moldau.rest.consuming.instances import Format
from moldau.web.errors import ApiError
from moldau.web.negotiation import JSON, REST_V2, answer_type, media_type_of, preferred

BY_FORMAT = {each: f"application/vnd.kafka.{each}.v2+json" for each in Format}
FORMATS = {name: each for each, name in BY_FORMAT.items()}
ANSWERS = (REST_V2, JSON, *FORMATS)
PLAIN_BODIES = (REST_V2, JSON, *FORMATS, "")


def produced_format(request: Request) -> Format:
    """Of the records in a request. Raises 415."""
    found = FORMATS.get(media_type_of(request.headers.get("content-type", "")))
    if found is None:
        raise ApiError(415, "HTTP 415 Unsupported Media Type")
    return found


def check_plain_body(request: Request) -> None:
    if media_type_of(request.headers.get("content-type", "")) not in PLAIN_BODIES:
        raise ApiError(415, "HTTP 415 Unsupported Media Type")


def v2_type(request: Request) -> str:
    """Of an answer without records. Raises 406."""
    found = answer_type(request, ANSWERS)
    return JSON if found == JSON else REST_V2


def records_type(request: Request, kind: Format) -> str:
    """Whoever asks for records in another format than the instance has is told so."""
    accept = request.headers.get("accept", "")
    found = preferred(accept, (BY_FORMAT[kind], REST_V2, JSON))
    if found is not None:
        return found
    if preferred(accept, tuple(FORMATS)) is not None:
        told = "The requested embedded data format does not match the deserializer for this consumer instance"
        raise ApiError(40601, told)
    raise ApiError(406, "HTTP 406 Not Acceptable")
