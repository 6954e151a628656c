"""AlterClientQuotas, v0 and v1, which differ in their encoding: the controller decides."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from ipaddress import ip_address
from typing import Any

from moldau.broker.api import api
from moldau.broker.context import Context
from moldau.controller.image import QuotaEntity
from moldau.controller.settings.quotas import (
    IP,
    AlteredQuotas,
    QuotaAlteration,
    decide_alter_client_quotas,
    quota_entity,
)
from moldau.core.errors import ApiError, ErrorCode
from moldau.security.acls.vocabulary import CLUSTER_NAME, AclOperation, ResourceType
from moldau.wire.api import ApiKey
from moldau.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlteredEntry,
    EntityData,
    EntryData,
)

LOOKUP_S_MAX = 5.0  # for the names of hosts in one request


def _entity_of(entry: EntryData, _: Context) -> QuotaEntity:
    return quota_entity((part.entity_type, part.entity_name) for part in entry.entity)


@api(
    ApiKey.ALTER_CLIENT_QUOTAS,
    AlterClientQuotasRequest,
    versions=(0, 1),
    parts=(("entries", "entries"),),
    subject=_entity_of,
    forwarded=True,
)
async def alter_client_quotas(request: AlterClientQuotasRequest, context: Context) -> AlterClientQuotasResponse:
    wanted = [
        QuotaAlteration(_entity_of(entry, context), [(op.key, None if op.remove else op.value) for op in entry.ops])
        for entry in request.entries
    ]
    try:
        if not context.may(AclOperation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
        unknown_hosts = await _unknown_hosts(name for each in wanted for kind, name in each.entity if kind == IP)
        altered = await context.services.controller.write(
            lambda image: decide_alter_client_quotas(
                image, wanted, unknown_hosts=unknown_hosts, validate_only=request.validate_only
            )
        )
    except ApiError as wrong:
        altered = [AlteredQuotas(each.entity, wrong.code, wrong.message or None) for each in wanted]
    return AlterClientQuotasResponse(entries=[_shape(each) for each in altered])


def _shape(altered: AlteredQuotas) -> AlteredEntry:
    entity = [EntityData(entity_type, name) for entity_type, name in altered.entity]
    return AlteredEntry(altered.error, altered.message, entity)


async def _unknown_hosts(names: Iterable[str | None]) -> frozenset[str]:
    """Those that are neither addresses nor names that resolve. Asked here, for a decision waits for nobody."""
    hosts = {name for name in names if name and not _is_address(name)}
    if not hosts:
        return frozenset()
    loop = asyncio.get_running_loop()
    lookups = {asyncio.ensure_future(loop.getaddrinfo(host, None)): host for host in hosts}
    await asyncio.wait(lookups, timeout=LOOKUP_S_MAX)
    return frozenset(host for lookup, host in lookups.items() if not _is_found(lookup))


def _is_found(lookup: asyncio.Future[Any]) -> bool:
    if not lookup.done():
        lookup.cancel()
        return False
    return lookup.exception() is None


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
