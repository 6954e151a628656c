"""AlterUserScramCredentials, v0: SCRAM credentials to be set and taken away, each user on its own."""

from __future__ import annotations

import os

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.controller.settings.scram_credentials import (
    SECRET_BYTES,
    CredentialDeletion,
    CredentialUpsertion,
    UserResult,
    decide_alter_scram_credentials,
)
from moldau.core.errors import ApiError
from moldau.wire.api import ApiKey
from moldau.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)


@api(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, AlterUserScramCredentialsRequest, versions=(0, 0), forwarded=True)
async def alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest, context: Context
) -> AlterUserScramCredentialsResponse:
    deletions = [CredentialDeletion(each.name, each.mechanism) for each in request.deletions]
    upsertions = [
        CredentialUpsertion(each.name, each.mechanism, each.iterations, bytes(each.salt), bytes(each.salted_password))
        for each in request.upsertions
    ]
    try:
        results = await context.services.controller.write(
            lambda image: decide_alter_scram_credentials(
                image, deletions, upsertions, new_secret=os.urandom(SECRET_BYTES)
            )
        )
    except ApiError as wrong:
        users = [*(each.user for each in deletions), *(each.user for each in upsertions)]
        results = [UserResult(user, wrong.code, wrong.message) for user in dict.fromkeys(users)]
    return AlterUserScramCredentialsResponse(
        results=[AlterUserScramCredentialsResult(each.user, each.error, each.message) for each in results]
    )
