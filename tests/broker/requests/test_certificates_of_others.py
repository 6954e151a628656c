"""The files that a change of certificates names are looked at for those who may make it, and for nobody else."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.broker.authorization import Authorization
from moldau.broker.context import Context, Peer
from moldau.broker.handlers.incremental_alter_configs import incremental_alter_configs
from moldau.controller.settings.configs import AlterConfigOp, ResourceType
from moldau.security.acls.authorizer import Authorizer
from moldau.security.principals import ANONYMOUS
from moldau.wire.api import ApiKey
from moldau.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

KEY = "listener.name.secured.ssl.keystore.location"


class Certificates:
    def __init__(self) -> None:
        self.looked_at = 0

    async def check(self, _: object) -> None:
        self.looked_at += 1


@pytest.mark.parametrize(
    ("super_users", "times_named", "looks"),
    [((), 1, 0), ((), 2, 0), (("User:ANONYMOUS",), 1, 1), (("User:ANONYMOUS",), 2, 0)],
)
def test_whoever_may_not_change_a_broker_learns_nothing_of_its_files(
    super_users: tuple[str, ...], times_named: int, looks: int
) -> None:
    certificates = Certificates()

    async def write(_: object) -> list[Any]:
        return []

    image = SimpleNamespace(broker_config=lambda _: {})
    config = SimpleNamespace(layers=SimpleNamespace(dynamic_default={}))
    config.with_dynamic = lambda *_: config
    services: Any = SimpleNamespace(
        authorization=Authorization(Authorizer(super_users=frozenset(super_users))),
        broker_id=0,
        certificates=certificates,
        config=config,
        controller=SimpleNamespace(is_active=True, image=image, write=write),
        forwarding=None,
    )
    header: Any = SimpleNamespace(api_key=int(ApiKey.INCREMENTAL_ALTER_CONFIGS), api_version=1)
    change = AlterableConfig(KEY, int(AlterConfigOp.SET), "/etc/shadow")
    resource = AlterConfigsResource(int(ResourceType.BROKER), "0", [change])
    request = IncrementalAlterConfigsRequest(resources=[resource] * times_named)
    context = Context(services, header, Peer("PLAINTEXT", "10.0.0.1", 1, ANONYMOUS))
    answer: Any = incremental_alter_configs.call(request, context)
    asyncio.run(answer)
    assert certificates.looked_at == looks
