"""How many connections there may be, and how fast they may come."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import moldau
from moldau.broker.network.connection_quotas import (
    ConnectionQuotas,
    CreationRate,
    ListenerLimits,
    QuotaLimits,
    quota_limits,
)
from moldau.broker.network.listener import Listener
from moldau.core.config.broker import BrokerConfig
from moldau.core.config.definitions import ConfigError
from moldau.wire.messages.api_versions import ApiVersionsRequest
from moldau.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from moldau.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.hostile.attacker import CLOSED, Attacker

BROKER = 4
TCP_INFO_BACKLOG_AT = 28  # tcpi_sacked, which is the length of the accept queue for a socket that listens


def connections(address: tuple[str, int], count: int) -> list[Attacker]:
    return [Attacker(address) for _ in range(count)]


def is_answered(client: Attacker, wait_s: float) -> bool:
    """Whether the broker takes this connection on within the time."""
    client.socket.settimeout(wait_s)
    try:
        return client.socket.recv(1) != b""
    except TimeoutError:
        return False


def say_hello(client: Attacker) -> None:
    client.tell(ApiVersionsRequest(), 0)


@contextmanager
def running(**overrides: object) -> Iterator[moldau.EmbeddedBroker]:
    with moldau.run(overrides={key.replace("_", "."): value for key, value in overrides.items()}) as broker:
        yield broker


def address_of(broker: moldau.EmbeddedBroker) -> tuple[str, int]:
    return broker.host, broker.port


# The pure rules


def test_all_listeners_share_the_brokers_limit() -> None:
    quotas = ConnectionQuotas(QuotaLimits(connections_max=2))
    quotas.opened("A", "h", 0)
    assert quotas.full("B") is None
    quotas.opened("B", "h", 0)
    assert "2 connections" in (quotas.full("A") or "")
    quotas.closed("B", "h")
    assert quotas.full("A") is None


def test_the_brokers_limit_is_not_for_the_listener_of_brokers() -> None:
    quotas = ConnectionQuotas(QuotaLimits(connections_max=1, descriptors=3, protected_listener="INSIDE"))
    closed: list[str] = []
    for name in ("INSIDE", "OUTSIDE"):
        quotas.when_exceeded(name, lambda name=name: closed.append(name))  # type: ignore[misc]
    quotas.opened("OUTSIDE", "h", 0)
    assert "max.connections" in (quotas.full("OUTSIDE") or "")
    assert quotas.full("INSIDE") is None
    quotas.opened("INSIDE", "h", 0)
    assert closed == ["OUTSIDE"]
    quotas.closed("OUTSIDE", "h")
    quotas.opened("INSIDE", "h", 0)
    assert closed == ["OUTSIDE"], "nobody else has one"
    quotas.opened("INSIDE", "h", 0)
    assert "open files" in (quotas.full("INSIDE") or "")


def test_a_listener_has_a_limit_of_its_own() -> None:
    quotas = ConnectionQuotas(QuotaLimits(listeners={"A": ListenerLimits(connections_max=1), "B": ListenerLimits()}))
    quotas.opened("A", "h", 0)
    assert quotas.full("A") is not None
    assert quotas.full("B") is None


def test_whoever_waits_is_told_once_when_there_is_room() -> None:
    quotas = ConnectionQuotas(QuotaLimits(connections_max=1))
    woken: list[str] = []
    quotas.opened("A", "h", 0)
    quotas.when_free(lambda: woken.append("A"))
    quotas.closed("A", "h")
    quotas.limit(QuotaLimits())
    assert woken == ["A"]


def test_a_host_may_have_more_or_fewer_than_others() -> None:
    limits = QuotaLimits(connections_per_host_max=1, connections_of_host_max={"10.0.0.1": 2, "10.0.0.2": 0})
    quotas = ConnectionQuotas(limits)
    quotas.opened("A", "10.0.0.1", 0)
    assert not quotas.has_too_many("10.0.0.1")
    assert quotas.has_too_many("10.0.0.2")
    quotas.opened("A", "10.0.0.3", 0)
    assert quotas.has_too_many("10.0.0.3")


def test_a_burst_is_fine_and_the_average_holds() -> None:
    rate = CreationRate(5, windows=11, window_s=1.0)
    now_s, accepted = 0.0, []
    while now_s < 60:
        wait_s = rate.wait_s(now_s)
        assert 0 <= wait_s <= 1
        if wait_s:
            now_s += wait_s
        else:
            rate.record(now_s)
            accepted.append(now_s)
    assert len([at_s for at_s in accepted if at_s < 1]) == 50, "what ten seconds allow may come at once"
    assert 5 * 59 <= len(accepted) <= 5 * 61


def test_a_rate_of_none_lets_one_through_in_each_window() -> None:
    rate = CreationRate(0, windows=2, window_s=1.0)
    rate.record(0.0)
    assert rate.wait_s(0.0) == 1.0
    assert rate.wait_s(2.0) == 0.0


def test_the_broker_and_the_listener_both_slow_down() -> None:
    limits = QuotaLimits(
        creations_per_s_max=1, listeners={"A": ListenerLimits(creations_per_s_max=1), "B": ListenerLimits()}, windows=2
    )
    quotas = ConnectionQuotas(limits)
    quotas.opened("A", "h", 0.0)
    assert quotas.wait_s("A", 0.0) == 1.0
    assert quotas.wait_s("B", 0.0) == 1.0
    assert ConnectionQuotas().wait_s("A", 0.0) == 0.0


def test_the_configuration_becomes_limits() -> None:
    config = BrokerConfig.of(
        {
            "max.connections": "100",
            "max.connections.per.ip": "3",
            "max.connections.per.ip.overrides": "127.0.0.1:5, localhost:6,[::1]:7,no.such.host.invalid:8",
            "max.connection.creation.rate": "20",
            "listener.name.plaintext.max.connections": "10",
            "listener.name.plaintext.max.connection.creation.rate": "2",
        }
    )
    limits = asyncio.run(quota_limits(config, ["PLAINTEXT"], descriptors=50))
    assert (limits.connections_max, limits.descriptors, limits.protected_listener) == (100, 50, None)
    assert (limits.connections_per_host_max, limits.creations_per_s_max) == (3, 20)
    assert limits.connections_of_host_max["127.0.0.1"] in (5, 6)
    assert limits.connections_of_host_max["::1"] in (6, 7)
    assert limits.listeners == {"PLAINTEXT": ListenerLimits(connections_max=10, creations_per_s_max=2)}


@pytest.mark.parametrize("text", ["127.0.0.1", "127.0.0.1:", ":5", "a:-1", "a:many"])
def test_a_wrong_override_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="host:count"):
        BrokerConfig.of({"max.connections.per.ip.overrides": text})


def test_no_connections_for_all_need_some_for_a_few() -> None:
    with pytest.raises(ConfigError, match=r"max\.connections\.per\.ip\.overrides"):
        BrokerConfig.of({"max.connections.per.ip": "0"})


# A running broker


def test_beyond_the_limit_connections_wait_for_others_to_go() -> None:
    names = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT"}
    two = {"listeners": "PLAINTEXT://127.0.0.1:0,OTHER://127.0.0.1:0", **names}
    with moldau.run(overrides={"max.connections": 3, **two}) as broker:
        other = broker.addresses["OTHER"]
        first, second, third = (*connections(address_of(broker), 2), Attacker((other.host, other.port)))
        for client in (first, second, third):
            say_hello(client)
            assert is_answered(client, 10)
        with Attacker((other.host, other.port)) as late:
            say_hello(late)
            assert not is_answered(late, 0.3)
            second.socket.close()
            assert is_answered(late, 10)
        first.socket.close()
        third.socket.close()
        assert "not accepting on" in broker.output()


def test_clients_do_not_keep_brokers_from_their_listener() -> None:
    names = {"listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT"}
    two = {"listeners": "OUTSIDE://127.0.0.1:0,INSIDE://127.0.0.1:0", "inter.broker.listener.name": "INSIDE", **names}
    with moldau.run(overrides={"max.connections": 2, **two}) as broker:
        inside = broker.addresses["INSIDE"]
        idle, busy = connections(address_of(broker), 2)
        for client in (idle, busy):
            assert client.ask(ApiVersionsRequest(), 0).error_code == 0
        with Attacker((inside.host, inside.port)) as admin:
            assert admin.ask(ApiVersionsRequest(), 0).error_code == 0
            assert idle.ask(ApiVersionsRequest(), 0) == CLOSED
            assert busy.ask(ApiVersionsRequest(), 0).error_code == 0
        for client in (idle, busy):
            client.socket.close()


def test_a_host_with_too_many_connections_is_hung_up_on() -> None:
    with running(max_connections_per_ip=1, **{"max.connections.per.ip.overrides": "127.0.0.1:2"}) as broker:
        kept = connections(address_of(broker), 2)
        for client in kept:
            say_hello(client)
            assert is_answered(client, 10)
        with Attacker(address_of(broker)) as refused:
            assert refused.socket.recv(1) == b""
        for client in kept:
            client.socket.close()


def test_connections_that_come_too_fast_are_delayed_and_not_refused() -> None:
    quick = {"quota.window.num": 2, "quota.window.size.seconds": 1}  # an average over one second, and no burst
    with running(max_connection_creation_rate=4, **quick) as broker:
        begun_s = time.monotonic()
        clients = connections(address_of(broker), 9)
        for client in clients:
            say_hello(client)
            assert is_answered(client, 20)
        took_s = time.monotonic() - begun_s
        for client in clients:
            client.socket.close()
    assert took_s > 0.9, "nine connections at four a second, four of them at once"


def test_limits_change_while_the_broker_runs() -> None:
    def change(client: Attacker, name: str, value: str) -> int:
        setting = AlterableConfig(name=name, config_operation=0, value=value)
        resource = AlterConfigsResource(resource_type=BROKER, resource_name="", configs=[setting])
        answer = client.ask(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)
        return int(answer.responses[0].error_code)

    with running() as broker, Attacker(address_of(broker)) as first:
        assert change(first, "listener.name.plaintext.max.connections", "1") == 0
        with Attacker(address_of(broker)) as late:
            say_hello(late)
            assert not is_answered(late, 0.3)
            assert change(first, "listener.name.plaintext.max.connections", "2") == 0
            assert is_answered(late, 10)
        assert change(first, "listener.name.plaintext.ssl.keystore.location", "/keys") == 42
        assert change(first, "cordoned.log.dirs", "/data") == 42


def test_the_backlog_and_the_buffers_have_their_size() -> None:
    listener = Listener("PLAINTEXT")
    listener.bind("127.0.0.1", 0, backlog=7, receive_buffer_bytes=50_000)
    sock = listener._socket
    assert sock is not None
    (backlog,) = struct.unpack_from("I", sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104), TCP_INFO_BACKLOG_AT)
    assert backlog == 7
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 100_000, "the system doubles it, for its own use"
    listener.close()


def test_a_start_without_settings_says_which_defaults_are_its_own() -> None:
    keys = ["socket.listen.backlog.size", "socket.receive.buffer.bytes"]
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name="0", configuration_keys=keys)
    with running() as broker, Attacker(address_of(broker)) as client:
        answer = client.ask(DescribeConfigsRequest(resources=[resource]), 4)
    assert {config.name: config.value for config in answer.results[0].configs} == dict(
        zip(keys, ("1024", "-1"), strict=True)
    )
