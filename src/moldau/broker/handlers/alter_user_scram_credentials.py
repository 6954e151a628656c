"""AlterUserScramCredentials, v0: SCRAM credentials to be set and taken away, each user on its own."""

from __future__ import annotations

import os
from collections.abc import Iterator

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.controller.settings.scram_credentials import (
    SECRET_BYTES,
    Alteration,
    CredentialDeletion,
    CredentialUpsertion,
    UserResult,
    decide_alter_scram_credentials,
)
from moldau.coordinator.long_work import chunks
from moldau.core.errors import ApiError
from moldau.wire.api import ApiKey
from moldau.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)

USERS_PER_WRITE = 200  # the keys of so many are computed in some milliseconds


@api(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, AlterUserScramCredentialsRequest, versions=(0, 0), forwarded=True)
async def alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest, context: Context
) -> AlterUserScramCredentialsResponse:
    alterations: list[Alteration] = [CredentialDeletion(each.name, each.mechanism) for each in request.deletions]
    alterations += [
        CredentialUpsertion(each.name, each.mechanism, each.iterations, bytes(each.salt), bytes(each.salted_password))
        for each in request.upsertions
    ]
    results: list[UserResult] = []
    for some in [*_portions(alterations)] or [[]]:
        results += await _alter(some, context)
    return AlterUserScramCredentialsResponse(
        results=[AlterUserScramCredentialsResult(each.user, each.error, each.message) for each in results]
    )


def _portions(alterations: list[Alteration]) -> Iterator[list[Alteration]]:
    """Some hundred users at a time, each with all that is asked for: whoever is named twice is refused."""
    if len(alterations) <= USERS_PER_WRITE:
        yield alterations
        return
    by_user: dict[str, list[Alteration]] = {}
    for each in alterations:
        by_user.setdefault(each.user, []).append(each)
    for users in chunks(by_user.values(), USERS_PER_WRITE):
        yield [each for asked in users for each in asked]


async def _alter(alterations: list[Alteration], context: Context) -> list[UserResult]:
    deletions = [each for each in alterations if isinstance(each, CredentialDeletion)]
    upsertions = [each for each in alterations if isinstance(each, CredentialUpsertion)]
    try:
        return await context.services.controller.write(
            lambda image: decide_alter_scram_credentials(
                image, deletions, upsertions, new_secret=os.urandom(SECRET_BYTES)
            )
        )
    except ApiError as wrong:
        return [
            UserResult(user, wrong.code, wrong.message) for user in dict.fromkeys(each.user for each in alterations)
        ]
