"""Whether a text is a JSON Schema, and whether values fit it, by the library jsonschema-rs.

Compiled code: its patterns take linear time, or a limited number of steps where they look around, and it asks nobody
for what a `$ref` names.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from moldau.core import limits
from moldau.schemas.json_schema.documents import BASE, Documents, Draft
from moldau.schemas.json_text import write_json
from moldau.schemas.model import InvalidSchema, InvalidValue, Json

_ERRORS_MAX = 5  # of one value, that are told
_ERROR_CHARS_MAX = 200  # of one of them: it may quote the value


def compile_validator(contents: Json, documents: Documents) -> Any:
    """Raises InvalidSchema."""
    import jsonschema_rs

    unknown: list[str] = []
    try:
        retrieve = _retriever(documents, unknown)
        return _class_of(documents.draft)(contents, retriever=retrieve, pattern_options=_patterns())
    except jsonschema_rs.ValidationError as error:
        if unknown:
            ref = unknown[0].removeprefix(BASE)[:200]
            raise InvalidSchema(f"the $ref {write_json(ref)} leads to none of the references") from None
        path = "".join(f"/{part}" for part in error.instance_path)
        raise InvalidSchema(f"at {path or 'the root'}: {_short(error.message)}") from None
    except (jsonschema_rs.ReferencingError, ValueError) as error:
        raise InvalidSchema(_short(str(error))) from None


def check_value(validator: Any, value: Json, *, is_explained: bool) -> None:
    """Raises InvalidValue with the first errors, each with the place in the value."""
    if validator.is_valid(value):
        return
    if not is_explained:
        raise InvalidValue("it does not fit its schema, which is too large to say where")
    errors = []
    for error in validator.iter_errors(value):
        path = "".join(f"/{part}" for part in error.instance_path)
        errors.append(f"at {path or 'the root'}: {_short(error.message)}")
        if len(errors) == _ERRORS_MAX:
            break
    raise InvalidValue("; ".join(errors))


@lru_cache(maxsize=1_000)
def _pattern_validator(pattern: str) -> Any:
    import jsonschema_rs

    return jsonschema_rs.Draft7Validator({"pattern": pattern}, pattern_options=_patterns())


def pattern_found(pattern: str, text: str) -> bool:
    """Whether the pattern is somewhere in the text, by the rules that values are judged by."""
    return bool(_pattern_validator(pattern).is_valid(text))


def _class_of(draft: Draft) -> Any:
    import jsonschema_rs

    classes: Mapping[Draft, Any] = {
        Draft.DRAFT_4: jsonschema_rs.Draft4Validator,
        Draft.DRAFT_6: jsonschema_rs.Draft6Validator,
        Draft.DRAFT_7: jsonschema_rs.Draft7Validator,
        Draft.DRAFT_2019_09: jsonschema_rs.Draft201909Validator,
        Draft.DRAFT_2020_12: jsonschema_rs.Draft202012Validator,
    }
    return classes[draft]


def _patterns() -> Any:
    import jsonschema_rs

    return jsonschema_rs.FancyRegexOptions(backtrack_limit=limits.JSON_PATTERN_STEPS_MAX)


def _retriever(documents: Documents, unknown: list[str]) -> Any:
    """What is asked for in vain is noted, since the library's own error speaks of networks."""

    def retrieve(uri: str) -> Json:
        try:
            return documents.find(uri)
        except KeyError:
            unknown.append(uri)
            raise

    return retrieve


def _short(text: str) -> str:
    return text if len(text) <= _ERROR_CHARS_MAX else text[: _ERROR_CHARS_MAX - 3] + "..."
