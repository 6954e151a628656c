"""Refusals with Confluent's codes and words: clients compare both."""

from __future__ import annotations

from moldau.web.errors import ApiError

INVALID_SCHEMA = 42_201


def subject_not_found(subject: str) -> ApiError:
    return ApiError(40_401, f"Subject '{subject}' not found.")


def context_not_found(context: str) -> ApiError:
    return ApiError(40_401, f"Context '{context}' not found.")


def version_not_found(version: object) -> ApiError:
    return ApiError(40_402, f"Version {version} not found.")


def schema_not_found(which: object = None) -> ApiError:
    return ApiError(40_403, "Schema not found" if which is None else f"Schema {which} not found")


def subject_soft_deleted(subject: str) -> ApiError:
    return ApiError(40_404, f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently")


def subject_not_soft_deleted(subject: str) -> ApiError:
    return ApiError(40_405, f"Subject '{subject}' was not deleted first before being permanently deleted")


def version_soft_deleted(subject: str, version: int) -> ApiError:
    return ApiError(
        40_406, f"Subject '{subject}' Version {version} was soft deleted. Set permanent=true to delete permanently"
    )


def version_not_soft_deleted(subject: str, version: int) -> ApiError:
    return ApiError(
        40_407, f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
    )


def no_own_level(subject: str | None) -> ApiError:
    return ApiError(40_408, f"Subject '{subject}' does not have subject-level compatibility configured")


def no_own_mode(subject: str | None) -> ApiError:
    return ApiError(40_409, f"Subject '{subject}' does not have subject-level mode configured")


def incompatible(subject: str, details: str) -> ApiError:
    return ApiError(
        40_901,
        f'Schema being registered is incompatible with an earlier schema for subject "{subject}", details: {details}',
    )


def invalid_schema(message: str) -> ApiError:
    return ApiError(INVALID_SCHEMA, message)


def invalid_version(version: str) -> ApiError:
    return ApiError(
        42_202,
        f"The specified version '{version}' is not a valid version id. Allowed values are between [1, 2^31-1] and"
        ' the string "latest"',
    )


def invalid_level() -> ApiError:
    levels = "NONE, BACKWARD, FORWARD, FULL, BACKWARD_TRANSITIVE, FORWARD_TRANSITIVE, and FULL_TRANSITIVE"
    return ApiError(42_203, f"Invalid compatibility level. Valid values are {levels}")


def invalid_mode() -> ApiError:
    return ApiError(42_204, "Invalid mode. Valid values are READWRITE, READONLY, READONLY_OVERRIDE, IMPORT and FORWARD")


def not_permitted(message: str) -> ApiError:
    return ApiError(42_205, message)


def reference_exists(subject: str, version: int) -> ApiError:
    key = f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}"
    return ApiError(42_206, f"One or more references exist to the schema {key}.")


def id_does_not_match(message: str) -> ApiError:
    return ApiError(42_207, message)


def invalid_subject(subject: str) -> ApiError:
    return ApiError(42_208, f"The specified subject '{subject}' is not a valid subject.")


def schema_too_large(message: str) -> ApiError:
    return ApiError(42_209, message)


def invalid_rule_set(message: str) -> ApiError:
    return ApiError(42_210, message)


def context_not_empty(context: str) -> ApiError:
    return ApiError(42_211, f"The specified context '{context}' is not empty.")


def unprocessable(message: str) -> ApiError:
    return ApiError(422, message)


def store_failed(message: str) -> ApiError:
    return ApiError(50_001, message)


def timed_out(message: str) -> ApiError:
    return ApiError(50_002, message)


def not_forwarded(message: str) -> ApiError:
    return ApiError(50_003, message)


def no_leader() -> ApiError:
    return ApiError(50_004, "Leader not known.")
