"""New certificates for this broker's listeners, judged before the change is written down: only here are the files."""

from __future__ import annotations

from collections.abc import Sequence

from moldau.broker.context import Context, Services
from moldau.controller.settings.configs import AlteredResource, ResourceChange, ResourceType, config_after
from moldau.core.config.definitions import ConfigError
from moldau.core.config.dynamic import is_store_key
from moldau.core.errors import ErrorCode


def of_our_certificates(wanted: Sequence[ResourceChange], context: Context) -> list[ResourceChange]:
    ours = (ResourceType.BROKER, str(context.services.broker_id))
    about_us = [each for each in wanted if (each.type, each.name) == ours]
    return [each for each in about_us if any(is_store_key(change.name) for change in each.changes)]


async def refused_certificates(wanted: Sequence[ResourceChange], services: Services) -> list[AlteredResource]:
    """The resources among these that name certificates which this broker can't go over to."""
    refused = []
    for each in wanted:
        if (problem := await _problem(each, services)) is not None:
            refused.append(AlteredResource(each.type, each.name, ErrorCode.INVALID_REQUEST, problem))
    return refused


async def _problem(resource: ResourceChange, services: Services) -> str | None:
    try:
        config = config_after(services.controller.image, resource, services.config)
        if config is not None and services.certificates is not None:
            await services.certificates.check(config)
    except ConfigError as wrong:
        return str(wrong)
    return None
