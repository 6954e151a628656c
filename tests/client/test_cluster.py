"""Asking a cluster: who is asked, what passes by itself, and what is said when nobody answers."""

from __future__ import annotations

import contextlib
import socket
import threading
import uuid
from collections.abc import Iterator

import pytest

import moldau
from moldau.client.addresses import addresses_of
from moldau.client.cluster import (
    Cluster,
    CoordinatorKind,
    NoAnswer,
    NobodyListens,
    Refused,
    Silence,
    check,
)
from moldau.client.connection import Unsupported
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.wire.messages import (
    ApiVersionsRequest,
    DescribeClusterRequest,
    DescribeClusterResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from tests.faults.clients import create_topic


@pytest.fixture
def cluster(bootstrap: str) -> Iterator[Cluster]:
    with Cluster(bootstrap, client_id="test", timeout_s=20) as opened:
        yield opened


def test_any_broker_a_certain_one_the_controller_and_a_coordinator(cluster: Cluster) -> None:
    ids = set(cluster.nodes())
    request = DescribeClusterRequest()
    assert {each.broker_id for each in cluster.ask(request, DescribeClusterResponse).brokers} == ids
    chosen = min(ids)
    assert cluster.ask_broker(chosen, ListGroupsRequest(), ListGroupsResponse).error_code == 0
    found = cluster.ask_controller(request, DescribeClusterResponse, codes=lambda answer: [answer.error_code])
    assert found.error_code == 0
    assert cluster.coordinator(CoordinatorKind.GROUP, "a-group") in ids
    assert cluster.coordinator(CoordinatorKind.TRANSACTION, "an-id") in ids


def test_places_by_their_leaders_and_why_others_have_none(cluster: Cluster) -> None:
    topic = f"led-{uuid.uuid4().hex[:10]}"
    create_topic(cluster.servers, topic)
    there, beyond, nowhere = TopicPartition(topic, 0), TopicPartition(topic, 99), TopicPartition("nope", 0)
    led, unled = cluster.led([there, beyond, nowhere, there])
    assert [*led.values()] == [[there]]
    assert unled == dict.fromkeys((beyond, nowhere), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_asking_about_a_topic_creates_none(cluster: Cluster) -> None:
    cluster.metadata(["not-there-yet"])
    assert "not-there-yet" not in {topic.name for topic in cluster.metadata().topics}


def test_a_broker_that_is_not_there(cluster: Cluster) -> None:
    with pytest.raises(NoAnswer, match="there is no broker 4711 at"):
        cluster.ask_broker(4711, ListGroupsRequest(), ListGroupsResponse)


def test_a_server_that_hangs_is_passed_over(bootstrap: str) -> None:
    """As a broker whose disk hangs: the system takes its connections. A monitor would see nothing of the cluster."""
    with socket.create_server(("127.0.0.1", 0)) as hung:
        servers = f"127.0.0.1:{hung.getsockname()[1]}"
        with Cluster(f"{servers},{bootstrap}", client_id="test", timeout_s=1.0) as cluster:
            assert cluster.nodes()
            assert cluster.ask(DescribeClusterRequest(), DescribeClusterResponse).error_code == 0
        with (
            Cluster(f"{servers},127.0.0.1:1", client_id="test", timeout_s=0.2) as cluster,
            pytest.raises(Silence, match=f"something listens at {servers} but gave no answer"),
        ):
            cluster.nodes()


def test_what_passes_is_asked_again_and_what_does_not_counts() -> None:
    cluster = Cluster("nowhere:1", client_id="test", timeout_s=20)
    codes = iter([ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.GROUP_ID_NOT_FOUND])
    asked: list[int] = []

    def ask() -> ListGroupsResponse:
        asked.append(next(codes))
        return ListGroupsResponse(error_code=asked[-1])

    found = cluster.patiently(ask, lambda answer: [answer.error_code])
    assert (found.error_code, len(asked)) == (ErrorCode.GROUP_ID_NOT_FOUND, 3)


def test_a_refusal_has_the_brokers_words_or_those_of_its_code() -> None:
    check(0)
    with pytest.raises(Refused, match="because"):
        check(1, "because")
    with pytest.raises(Refused) as refused:
        check(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert (str(refused.value), refused.value.code) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED.message, 29)
    with pytest.raises(Refused, match="error 31337"):
        check(31_337)


def test_nobody_listens() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        with (
            pytest.raises(NobodyListens),
            Cluster(f"127.0.0.1:{held.getsockname()[1]}", client_id="", timeout_s=5) as one,
        ):
            one.nodes()


def test_the_next_server_is_asked_if_the_first_is_gone(bootstrap: str) -> None:
    with Cluster(f"127.0.0.1:1,{bootstrap}", client_id="test", timeout_s=20) as cluster:
        assert cluster.nodes()


@pytest.mark.parametrize(
    ("says", "told"),
    [
        (b"", "gave no answer in 0.3 s; is it a Kafka broker"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "an answer of 1213486160 bytes; is it a Kafka broker"),
        (b"\xff\xff\xff\xff", "an answer of -1 bytes"),
        (b"\0\0\0\x04\0\0\0\x63", "an answer to another request"),
        (b"\0\0\0\x05\0\0\0\x01\0", "is it a Kafka broker"),
    ],
    ids=["silence", "HTTP", "a negative size", "another request", "cut"],
)
def test_something_else_listens(says: bytes, told: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer_once, args=(server, says), daemon=True).start()
        with Cluster(f"127.0.0.1:{server.getsockname()[1]}", client_id="test", timeout_s=0.3) as cluster:
            with pytest.raises(NoAnswer, match=told) as failed:
                cluster.nodes()
            assert isinstance(failed.value, Silence) == (says == b"")


def test_who_answers_byte_by_byte_holds_nobody() -> None:
    asked, gone = threading.Event(), threading.Event()

    def answer(server: socket.socket) -> None:
        peer, _ = server.accept()
        with peer, contextlib.suppress(OSError):
            peer.recv(1_000)
            asked.set()
            peer.sendall(b"\0\0\x03\xe8")
            while not gone.wait(0.05):
                peer.sendall(b"\0")

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer, args=(server,), daemon=True).start()
        with Cluster(f"127.0.0.1:{server.getsockname()[1]}", client_id="test", timeout_s=0.3) as cluster:
            with pytest.raises(Silence):
                cluster.nodes()
            assert asked.is_set()
        gone.set()


def answer_once(server: socket.socket, says: bytes) -> None:
    peer, _ = server.accept()
    with peer, contextlib.suppress(ConnectionError):
        peer.recv(1_000)
        peer.sendall(says)
        peer.recv(1_000)  # the client hangs up


def test_an_api_that_the_broker_lacks_is_named() -> None:
    class FromTheFuture(ApiVersionsRequest):
        VERSIONS = (30_000, 30_001)

    with moldau.run() as broker, Cluster(broker.bootstrap_servers, client_id="test", timeout_s=20) as cluster:
        with pytest.raises(Unsupported, match=f"the broker at {broker.bootstrap_servers} does not answer API_VERSIONS"):
            cluster.ask(FromTheFuture(), ListGroupsResponse)
        assert cluster.nodes()  # the connection is as good as before


@pytest.mark.parametrize("servers", ["broker:kafka", "a:1,b:0", "b:70000"])
def test_a_server_without_a_port_number_is_refused(servers: str) -> None:
    with pytest.raises(ValueError, match="expected HOST:PORT"):
        addresses_of(servers)
