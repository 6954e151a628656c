"""What brokers ask of each other is answered to nobody else, also while they go over to another listener or user."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from moldau.broker.context import Context, Peer, Services
from moldau.broker.handlers.between_brokers import BETWEEN_BROKERS
from moldau.broker.handlers.envelope import envelope
from moldau.broker.requests.fellow_brokers import FellowBrokers
from moldau.controller.image import BrokerImage, ClusterImage, Endpoint
from moldau.core.config.broker import BrokerConfig
from moldau.core.errors import ErrorCode
from moldau.node.listening import broker_principal
from moldau.security.principals import ANONYMOUS, Principal
from moldau.wire.api import ApiKey
from moldau.wire.messages.envelope import EnvelopeRequest

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
JAAS = "listener.name.inside.plain.sasl.jaas.config"
SECURED = {
    "listeners": "INSIDE://127.0.0.1:9093,OUTSIDE://127.0.0.1:9094,OPEN://127.0.0.1:9092",
    "listener.security.protocol.map": "INSIDE:SASL_PLAINTEXT,OUTSIDE:SASL_PLAINTEXT,OPEN:PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    JAAS: f'{PLAIN} username="broker" password="secret" user_broker="secret" user_alice="secret";',
    "listener.name.outside.plain.sasl.jaas.config": f'{PLAIN} user_broker="secret" user_alice="secret";',
}
OPEN = {**SECURED, "inter.broker.listener.name": "OPEN"}
ENDPOINTS = {
    "INSIDE": Endpoint("b2", 9093, "SASL_PLAINTEXT"),
    "OUTSIDE": Endpoint("b2", 9094, "SASL_PLAINTEXT"),
    "OPEN": Endpoint("b2", 9092, "PLAINTEXT"),
}
BROKER, ALICE = Principal("User", "broker"), Principal("User", "alice")
EVERYWHERE = [(name, principal) for name in ("INSIDE", "OUTSIDE") for principal in (BROKER, ALICE)]
INSIDE = BrokerImage(2, ENDPOINTS, inter_broker_listener="INSIDE", inter_broker_principal="User:broker")
IN_THE_OPEN = BrokerImage(2, ENDPOINTS, inter_broker_listener="OPEN")


def user(name: str) -> dict[str, str]:
    return {JAAS: f'{PLAIN} username="{name}" password="secret";'}


class World:
    """Broker 1, whose configuration this is, and what the image says of others."""

    def __init__(self, static: dict[str, str], *others: BrokerImage) -> None:
        self.config = BrokerConfig.of({"node.id": "1", **static})
        itself = BrokerImage(
            1,
            ENDPOINTS,
            inter_broker_listener=self.config.text("inter.broker.listener.name"),
            inter_broker_principal=broker_principal(self.config),
        )
        self.controller = SimpleNamespace(image=ClusterImage(brokers={each.id: each for each in (itself, *others)}))
        services: Any = SimpleNamespace(config=self.config, controller=self.controller, itself=itself)
        self.services: Services = services
        self.fellows = FellowBrokers(services, broker_principal)

    def is_broker(self, listener: str, principal: Principal) -> bool:
        return self.fellows.includes(Peer(listener, "10.0.0.1", 1, principal))

    @property
    def admitted(self) -> list[tuple[str, str]]:
        asking = [*EVERYWHERE, ("OPEN", ANONYMOUS)]
        return [(name, principal.name) for name, principal in asking if self.is_broker(name, principal)]

    def reconfigured(self, **configs: dict[str, str]) -> None:
        brokers = self.controller.image.brokers
        self.controller.image = ClusterImage(brokers=brokers, broker_configs=configs)


def test_a_client_on_the_listener_of_brokers_is_none() -> None:
    assert World(SECURED, INSIDE).admitted == [("INSIDE", "broker")]


def test_a_broker_is_known_before_the_cluster_knows_it() -> None:
    world = World(SECURED)
    world.controller.image = ClusterImage()
    assert world.admitted == [("INSIDE", "broker")]


def test_where_nobody_logs_in_everybody_may_be_a_broker_on_their_listener() -> None:
    assert World(OPEN, IN_THE_OPEN).admitted == [("OPEN", "ANONYMOUS")]


@pytest.mark.parametrize(("static", "other"), [(SECURED, IN_THE_OPEN), (OPEN, INSIDE)], ids=["first", "last"])
def test_brokers_go_from_an_open_listener_to_a_secured_one_one_by_one(
    static: dict[str, str], other: BrokerImage
) -> None:
    assert World(static, other).admitted == [("INSIDE", "broker"), ("OPEN", "ANONYMOUS")]


def test_brokers_go_over_to_a_second_user_one_by_one() -> None:
    world = World(SECURED, replace(INSIDE, inter_broker_principal="User:alice"))
    assert world.admitted == [("INSIDE", "broker"), ("INSIDE", "alice")]


@pytest.mark.parametrize("entity", ["", "2"])
def test_a_user_that_is_set_while_brokers_run_is_one_at_once(entity: str) -> None:
    world = World(SECURED, INSIDE)
    assert not world.is_broker("INSIDE", ALICE)
    world.reconfigured(**{entity: user("alice")})
    assert world.admitted == [("INSIDE", "broker"), ("INSIDE", "alice")]
    world.reconfigured()
    assert not world.is_broker("INSIDE", ALICE)


def test_a_configuration_that_can_not_be_read_admits_nobody_else() -> None:
    world = World(SECURED, INSIDE)
    world.reconfigured(**{"2": {JAAS: "nonsense"}})
    assert world.admitted == [("INSIDE", "broker")]


@pytest.mark.parametrize(
    "told", [replace(INSIDE, inter_broker_principal=""), BrokerImage(2, ENDPOINTS)], ids=["user", "all"]
)
def test_a_broker_that_does_not_tell_is_not_shut_out(told: BrokerImage) -> None:
    """By Kerberos or a token it can't tell who it is, and an older version tells nothing."""
    assert ("INSIDE", "alice") in World(SECURED, told).admitted
    assert World(SECURED, replace(told, fenced=True)).is_broker("INSIDE", BROKER)


def test_one_that_is_gone_and_told_nothing_keeps_no_door_open() -> None:
    assert World(SECURED, BrokerImage(2, ENDPOINTS, fenced=True)).admitted == [("INSIDE", "broker")]


def test_a_listener_of_another_name_is_that_of_its_protocol() -> None:
    renamed = replace(
        IN_THE_OPEN, inter_broker_listener="ELSEWHERE", endpoints={"ELSEWHERE": Endpoint("b2", 9, "PLAINTEXT")}
    )
    assert World(SECURED, renamed).admitted == [("INSIDE", "broker"), ("OPEN", "ANONYMOUS")]


@pytest.mark.parametrize("api", BETWEEN_BROKERS, ids=lambda api: api.key.name)
def test_a_client_is_refused_as_one_without_the_right_is(api: Any) -> None:
    world = World(SECURED, INSIDE)
    header: Any = SimpleNamespace(api_key=int(api.key), api_version=api.versions[1])
    asking = Context(world.services, header, Peer("INSIDE", "10.0.0.1", 1, ALICE))
    refused: Any = world.fellows.guarding(api).call(api.request(), asking)
    assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_a_broker_gets_to_the_handler() -> None:
    world = World(SECURED, INSIDE)
    world.services.dispatch = SimpleNamespace()  # type: ignore[assignment]
    header: Any = SimpleNamespace(api_key=int(ApiKey.ENVELOPE), api_version=0)
    asking = Context(world.services, header, Peer("INSIDE", "10.0.0.1", 1, BROKER))
    answering: Any = world.fellows.guarding(envelope).call(EnvelopeRequest(b"", None, b"no address"), asking)

    async def answer() -> Any:
        return await answering

    assert asyncio.run(answer()).error_code == ErrorCode.INVALID_REQUEST
