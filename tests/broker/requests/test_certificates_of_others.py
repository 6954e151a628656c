"""The files that a change of certificates names are looked at for those who may make it, and for nobody else."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.broker.authorization import Authorization
from moldau.broker.context import Context, Peer
from moldau.broker.handlers.incremental_alter_configs import incremental_alter_configs
from moldau.controller.settings.configs import AlterConfigOp, ResourceType
from moldau.core.errors import ErrorCode
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


def services_of(certificates: Certificates, super_users: tuple[str, ...]) -> Any:
    async def write(_: object) -> list[Any]:
        return []

    image = SimpleNamespace(broker_config=lambda _: {}, topics={})
    config = SimpleNamespace(layers=SimpleNamespace(dynamic_default={}))
    config.with_dynamic = lambda *_: config
    return SimpleNamespace(
        authorization=Authorization(Authorizer(super_users=frozenset(super_users))),
        broker_id=0,
        certificates=certificates,
        config=config,
        controller=SimpleNamespace(is_active=True, image=image, write=write),
        forwarding=None,
    )


def alter(resources: list[AlterConfigsResource], services: Any) -> Any:
    header: Any = SimpleNamespace(api_key=int(ApiKey.INCREMENTAL_ALTER_CONFIGS), api_version=1)
    context = Context(services, header, Peer("PLAINTEXT", "10.0.0.1", 1, ANONYMOUS))
    answer: Any = incremental_alter_configs.call(IncrementalAlterConfigsRequest(resources=resources), context)
    return asyncio.run(answer)


def change_of(kind: ResourceType, name: str, key: str) -> AlterConfigsResource:
    return AlterConfigsResource(int(kind), name, [AlterableConfig(key, int(AlterConfigOp.SET), "/etc/shadow")])


@pytest.mark.parametrize(
    ("super_users", "times_named", "looks"),
    [((), 1, 0), ((), 2, 0), (("User:ANONYMOUS",), 1, 1), (("User:ANONYMOUS",), 2, 0)],
)
def test_whoever_may_not_change_a_broker_learns_nothing_of_its_files(
    super_users: tuple[str, ...], times_named: int, looks: int
) -> None:
    certificates = Certificates()
    alter([change_of(ResourceType.BROKER, "0", KEY)] * times_named, services_of(certificates, super_users))
    assert certificates.looked_at == looks


def test_each_denial_is_told_and_audited_once(caplog: pytest.LogCaptureFixture) -> None:
    resources = [
        change_of(ResourceType.BROKER, "0", KEY),
        change_of(ResourceType.BROKER, "1", KEY),
        change_of(ResourceType.TOPIC, "orders", "retention.ms"),
        change_of(ResourceType.BROKER_LOGGER, "0", "moldau"),
    ]
    with caplog.at_level(logging.INFO):
        answer = alter(resources, services_of(Certificates(), ()))
    expected = [
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ]
    assert [each.error_code for each in answer.responses] == expected
    audited = [each for each in caplog.messages if " is Denied operation = ALTER_CONFIGS " in each]
    assert len(audited) == len(resources), audited
