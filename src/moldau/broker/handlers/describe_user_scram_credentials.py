"""DescribeUserScramCredentials, v0: which users have SCRAM credentials, without what is secret in them."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.broker.requests.answers import Encoded, by_size
from moldau.controller.image import ClusterImage
from moldau.controller.settings.scram_credentials import describe_scram_credentials
from moldau.wire.api import ApiKey
from moldau.wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


@api(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, DescribeUserScramCredentialsRequest, versions=(0, 0))
def describe_user_scram_credentials(
    request: DescribeUserScramCredentialsRequest, context: Context
) -> DescribeUserScramCredentialsResponse | Coroutine[Any, Any, Encoded[DescribeUserScramCredentialsResponse]]:
    image = context.services.controller.image
    users = None if request.users is None else [user.name for user in request.users]
    rows = len(image.scram_credentials) if users is None else len(users)
    return by_size(lambda: _response(image, users), rows, context)


def _response(image: ClusterImage, users: list[str] | None) -> DescribeUserScramCredentialsResponse:
    return DescribeUserScramCredentialsResponse(
        results=[
            DescribeUserScramCredentialsResult(
                user=each.user,
                error_code=each.error,
                error_message=each.message or "",
                credential_infos=[CredentialInfo(mechanism, iterations) for mechanism, iterations in each.iterations],
            )
            for each in describe_scram_credentials(image, users)
        ],
    )
