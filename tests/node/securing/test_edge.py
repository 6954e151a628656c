"""What a secured listener does with those who say the wrong thing, say it at the wrong time, or say nothing."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from moldau.core.errors import ErrorCode
from moldau.node.securing.doors import NICE_STEPS
from moldau.wire.messages import (
    AlterClientQuotasRequest,
    ApiVersionsRequest,
    MetadataRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from moldau.wire.messages.alter_client_quotas import EntityData, EntryData, OpData
from tests.hostile.attacker import CLOSED, Attacker, framed
from tests.node.securing.secured import PASSWORDS, REAUTHENTICATION_MS, Secured, running_secured

PLAIN_TOKEN = f"\0alice\0{PASSWORDS['alice']}".encode()
STALLED = 600  # more than may be under way


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A broker of its own: others' refused logins may be all that its log tells of this host in a minute."""
    with running_secured(tmp_path_factory.mktemp("edge")) as running:
        yield running


def address(secured: Secured, protocol: str) -> tuple[str, int]:
    found = secured.broker.addresses[protocol]
    return found.host, found.port


@contextmanager
def client(secured: Secured, protocol: str) -> Iterator[Attacker]:
    with Attacker(address(secured, protocol)) as attacker:
        if "SSL" in protocol:
            context = ssl.create_default_context(cafile=str(secured.keys.trusted))
            attacker.socket = context.wrap_socket(attacker.socket, server_hostname="localhost")
        yield attacker


def log_in(attacker: Attacker, token: bytes = PLAIN_TOKEN, version: int = 2) -> Any:
    assert attacker.ask(SaslHandshakeRequest("PLAIN"), 1).error_code == 0
    return attacker.ask(SaslAuthenticateRequest(token), version)


def test_who_shakes_hands_goes_behind_the_event_loop(secured: Secured) -> None:
    with client(secured, "SSL"):
        pass
    loop, *threads = niceness(secured.broker.pid)
    assert loop + NICE_STEPS in threads


def niceness(process_id: int) -> list[int]:
    """Of each thread, the first one first."""
    tasks = sorted(Path(f"/proc/{process_id}/task").iterdir(), key=lambda task: int(task.name))
    return [int((task / "stat").read_text().rpartition(")")[2].split()[16]) for task in tasks]


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_where_nobody_logs_in_a_login_is_out_of_place(protocol: str, secured: Secured) -> None:
    with client(secured, protocol) as attacker:
        assert attacker.ask(SaslHandshakeRequest("PLAIN"), 1).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert attacker.ask(SaslAuthenticateRequest(PLAIN_TOKEN), 2).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert attacker.ask(MetadataRequest(), 9).error_code == 0


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_nothing_but_the_versions_is_told_before_a_login(protocol: str, secured: Secured) -> None:
    with client(secured, protocol) as attacker:
        told = {each.api_key: each.max_version for each in attacker.ask(ApiVersionsRequest("a", "1"), 3).api_keys}
        assert (told[17], told[36]) == (1, 2)
        assert attacker.ask(MetadataRequest(), 9) == CLOSED
    with client(secured, protocol) as attacker:
        assert attacker.ask(MetadataRequest(), 9) == CLOSED
    with client(secured, protocol) as attacker:
        assert log_in(attacker).error_code == 0
        assert attacker.ask(MetadataRequest(), 9).error_code == 0
        assert attacker.ask(ApiVersionsRequest("a", "1"), 3).error_code == 0


def test_the_versions_are_told_whoever_has_to_pause(secured: Secured) -> None:
    """Who has not logged in counts as nobody's client: no quota of that name keeps anybody from a login."""
    nobody = [EntityData("user", "ANONYMOUS")]

    def limit(*, remove: bool) -> None:
        with client(secured, "SASL_PLAINTEXT") as admin:
            log_in(admin)
            change = EntryData(nobody, [OpData("request_percentage", 1e-6, remove)])
            assert admin.ask(AlterClientQuotasRequest([change]), 1).entries[0].error_code == 0

    limit(remove=False)
    try:
        with client(secured, "PLAINTEXT") as busy:
            while not busy.ask(ApiVersionsRequest("a", "1"), 3).throttle_time_ms:
                pass
        with client(secured, "SASL_PLAINTEXT") as attacker:
            told = attacker.ask(ApiVersionsRequest("a", "1"), 3)
            assert (told.error_code, told.throttle_time_ms) == (0, 0)
            assert log_in(attacker).error_code == 0
    finally:
        limit(remove=True)


def test_the_versions_are_not_asked_for_with_half_a_megabyte(secured: Secured) -> None:
    with client(secured, "SASL_PLAINTEXT") as attacker:
        attacker.send(framed(struct.pack(">hhih", 18, 0, 1, -1) + bytes(500_000)))
        assert attacker.answer() == CLOSED
    wait_for_line(secured, "API_VERSIONS of 500010 bytes; allowed 32768")


def test_a_wrong_name_of_software_is_told_and_may_be_mended(secured: Secured) -> None:
    with client(secured, "SASL_PLAINTEXT") as attacker:
        assert attacker.ask(ApiVersionsRequest("-", "-"), 3).error_code == ErrorCode.INVALID_REQUEST
        assert attacker.ask(ApiVersionsRequest("a", "1"), 3).error_code == 0
        assert attacker.ask(ApiVersionsRequest("a", "1"), 3) == CLOSED


def test_other_requests_during_an_exchange_end_it(secured: Secured) -> None:
    with client(secured, "SASL_PLAINTEXT") as attacker:
        attacker.ask(SaslHandshakeRequest("PLAIN"), 1)
        assert attacker.ask(ApiVersionsRequest("a", "1"), 3).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert attacker.answer() == CLOSED
    with client(secured, "SASL_PLAINTEXT") as attacker:
        attacker.ask(SaslHandshakeRequest("PLAIN"), 1)
        assert attacker.ask(MetadataRequest(), 9) == CLOSED


def test_a_mechanism_that_is_not_enabled_is_answered_with_those_that_are(secured: Secured) -> None:
    with client(secured, "SASL_PLAINTEXT") as attacker:
        answer = attacker.ask(SaslHandshakeRequest("GSSAPI"), 1)
        assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert answer.mechanisms == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
        assert attacker.answer() == CLOSED


def test_a_failed_login_is_answered_late_and_then_closed(secured: Secured) -> None:
    with client(secured, "SASL_PLAINTEXT") as attacker:
        begun_s = time.monotonic()
        answer = log_in(attacker, b"\0alice\0wrong")
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert time.monotonic() - begun_s >= 0.1
        assert attacker.answer() == CLOSED


def test_an_authorization_id_other_than_the_user_is_refused(secured: Secured) -> None:
    with client(secured, "SASL_PLAINTEXT") as attacker:
        answer = log_in(attacker, b"bob" + PLAIN_TOKEN)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


@pytest.mark.parametrize("token", [PLAIN_TOKEN, b"\0a\0b"])
def test_bare_tokens_follow_the_oldest_handshake(token: bytes, secured: Secured) -> None:
    with client(secured, "SASL_PLAINTEXT") as attacker:
        assert attacker.ask(SaslHandshakeRequest("PLAIN"), 0).error_code == 0
        attacker.send(framed(token))
        assert attacker.answer() == (b"" if token == PLAIN_TOKEN else CLOSED)
        if token == PLAIN_TOKEN:
            assert attacker.ask(MetadataRequest(), 9).error_code == 0


@pytest.mark.parametrize("size", [524_289, 2**31 - 1, -1, 0, 7])
def test_a_frame_before_a_login_is_short(size: int, secured: Secured) -> None:
    with client(secured, "SASL_SSL") as attacker:
        attacker.send(struct.pack(">i", size))
        assert attacker.answer() == CLOSED


def test_a_login_that_has_no_end_is_not_renewed(secured: Secured) -> None:
    with client(secured, "SASL_PLAINTEXT") as attacker:
        log_in(attacker)
        assert attacker.ask(SaslHandshakeRequest("PLAIN"), 1).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert attacker.ask(SaslAuthenticateRequest(PLAIN_TOKEN), 2).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert attacker.ask(MetadataRequest(), 9).error_code == 0


def test_a_login_with_an_end_is_renewed_by_the_same_user_only(secured: Secured) -> None:
    """PLAIN's logins on the listener SASL_SSL have one."""
    with client(secured, "SASL_SSL") as attacker:
        assert log_in(attacker).session_lifetime_ms == REAUTHENTICATION_MS
        assert attacker.ask(SaslHandshakeRequest("PLAIN"), 1).error_code == 0
        assert attacker.ask(SaslAuthenticateRequest(PLAIN_TOKEN), 2).session_lifetime_ms == REAUTHENTICATION_MS
        assert attacker.ask(MetadataRequest(), 9).error_code == 0
        time.sleep(1.1)  # Kafka's shortest time between two
        assert attacker.ask(SaslHandshakeRequest("PLAIN"), 1).error_code == 0
        other = attacker.ask(SaslAuthenticateRequest(f"\0bob\0{PASSWORDS['bob']}".encode()), 2)
        assert other.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert attacker.answer() == CLOSED


def test_a_request_after_the_end_of_a_login_is_not_answered(secured: Secured) -> None:
    with client(secured, "SASL_SSL") as attacker:
        log_in(attacker)
        assert attacker.ask(MetadataRequest(), 9).error_code == 0
        time.sleep(REAUTHENTICATION_MS / 1_000 + 0.1)
        assert attacker.ask(MetadataRequest(), 9) == CLOSED


def test_plain_bytes_at_a_tls_port_are_named_in_the_log(secured: Secured) -> None:
    with Attacker(address(secured, "SSL")) as attacker:
        attacker.tell(ApiVersionsRequest("a", "1"), 3)
        with contextlib.suppress(ConnectionResetError):
            while attacker.socket.recv(4096):  # an alert, which is no frame
                pass
    wait_for_line(secured, "what came is no TLS; is the client's security.protocol PLAINTEXT or SASL_PLAINTEXT?")


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SASL_PLAINTEXT"])
def test_tls_at_a_plain_port_is_closed(protocol: str, secured: Secured) -> None:
    context = ssl.create_default_context(cafile=str(secured.keys.trusted))
    with socket.create_connection(address(secured, protocol), 20) as plain, pytest.raises(OSError, match=r"SSL|reset"):
        context.wrap_socket(plain, server_hostname="localhost")
    wait_for_line(secured, "it speaks TLS, and this listener is plain")


def test_stalled_handshakes_cost_nobody_else_anything(secured: Secured) -> None:
    """One byte of a hello each: the oldest are given up when there are too many, and an honest client comes through."""
    with ExitStack() as held:
        stalled = [socket.create_connection(address(secured, "SSL"), 20) for _ in range(STALLED)]
        for one in stalled:
            held.callback(one.close)
            one.send(b"\x16")
        with client(secured, "SSL") as attacker:
            assert attacker.ask(MetadataRequest(), 9).error_code == 0
        assert stalled[0].recv(1) == b""
        stalled[-1].setblocking(False)
        with pytest.raises(BlockingIOError):
            stalled[-1].recv(1)


def test_the_rest_of_a_large_request_is_read_though_the_socket_is_empty(secured: Secured) -> None:
    """TLS decrypts more than was asked for, and no readable socket tells of it."""
    with client(secured, "SSL") as attacker:
        for _ in range(3):
            attacker.send(b"".join(_metadata(number) for number in range(4_000)))
            assert all(attacker.answer() != CLOSED for _ in range(4_000))


def _metadata(correlation_id: int) -> bytes:
    from tests.hostile.attacker import frame

    return frame(ApiVersionsRequest("a" * 200, "1"), 3, correlation_id)


def wait_for_line(secured: Secured, text: str) -> None:
    deadline_s = time.monotonic() + 20
    while text not in secured.broker.output() and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert text in secured.broker.output()
