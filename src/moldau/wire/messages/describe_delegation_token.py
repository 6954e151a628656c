"""DescribeDelegationToken (41): the delegation tokens of some owners, or all that the asker may see.

2 is flexible, 3 tells who asked for a token.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Struct

from moldau.wire.api import ApiKey
from moldau.wire.schema import Bytes, Int16, Int32, Int64, since


class DescribeDelegationTokenOwner(Struct, gc=False):
    principal_type: str = ""
    principal_name: str = ""


class DescribeDelegationTokenRequest(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.DESCRIBE_DELEGATION_TOKEN
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE_FROM: ClassVar[int] = 2

    owners: list[DescribeDelegationTokenOwner] | None = []


class DescribedDelegationTokenRenewer(Struct, gc=False):
    principal_type: str = ""
    principal_name: str = ""


class DescribedDelegationToken(Struct, gc=False):
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: Annotated[str, since(3)] = ""
    token_requester_principal_name: Annotated[str, since(3)] = ""
    issue_timestamp: Int64 = 0
    expiry_timestamp: Int64 = 0
    max_timestamp: Int64 = 0
    token_id: str = ""
    hmac: Bytes = b""
    renewers: list[DescribedDelegationTokenRenewer] = []


class DescribeDelegationTokenResponse(Struct, gc=False):
    API_KEY: ClassVar[int] = ApiKey.DESCRIBE_DELEGATION_TOKEN
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE_FROM: ClassVar[int] = 2

    error_code: Int16 = 0
    tokens: list[DescribedDelegationToken] = []
    throttle_time_ms: Int32 = 0
