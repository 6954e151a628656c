"""AlterUserScramCredentials (51): SCRAM credentials to be set and to be taken away; every version is flexible.

The password itself never travels: the client salts and hashes it.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import Bytes, Int8, Int16, Int32


class ScramCredentialDeletion(Struct, gc=False):
    name: str = ""
    mechanism: Int8 = 0


class ScramCredentialUpsertion(Struct, gc=False):
    name: str = ""
    mechanism: Int8 = 0
    iterations: Int32 = 0
    salt: Bytes = b""
    salted_password: Bytes = b""


class AlterUserScramCredentialsRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.ALTER_USER_SCRAM_CREDENTIALS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    deletions: list[ScramCredentialDeletion] = []
    upsertions: list[ScramCredentialUpsertion] = []


class AlterUserScramCredentialsResult(Struct, gc=False):
    user: str = ""
    error_code: Int16 = 0
    error_message: str | None = ""


class AlterUserScramCredentialsResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.ALTER_USER_SCRAM_CREDENTIALS
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_FROM: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    results: list[AlterUserScramCredentialsResult] = []
