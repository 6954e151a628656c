"""CreateDelegationToken (38): a token that logs in for its owner; 2 is flexible, 3 lets one user ask for another."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import Bytes, Int16, Int32, Int64, since


class CreatableRenewers(Struct, gc=False):
    principal_type: str = ""
    principal_name: str = ""


class CreateDelegationTokenRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.CREATE_DELEGATION_TOKEN
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE_FROM: ClassVar[int] = 2

    owner_principal_type: Annotated[str | None, since(3)] = ""
    owner_principal_name: Annotated[str | None, since(3)] = ""
    renewers: list[CreatableRenewers] = []
    max_lifetime_ms: Int64 = 0


class CreateDelegationTokenResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.CREATE_DELEGATION_TOKEN
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE_FROM: ClassVar[int] = 2

    error_code: Int16 = 0
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: Annotated[str, since(3)] = ""
    token_requester_principal_name: Annotated[str, since(3)] = ""
    issue_timestamp_ms: Int64 = 0
    expiry_timestamp_ms: Int64 = 0
    max_timestamp_ms: Int64 = 0
    token_id: str = ""
    hmac: Bytes = b""
    throttle_time_ms: Int32 = 0
