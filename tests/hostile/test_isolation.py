"""Nobody is served another's bytes, whatever goes wrong between a request and its answer."""

from __future__ import annotations

import re
import struct
import time

import pytest

from moldau.core.errors import ErrorCode
from moldau.wire.codec import decode, encode
from moldau.wire.messages import ApiVersionsRequest, DescribeGroupsRequest, FindCoordinatorRequest, JoinGroupRequest
from moldau.wire.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponse
from moldau.wire.schema import Message
from tests.hostile.attacker import Attacker, frame, framed
from tests.hostile.siege import Victim, unharmed

LONG_CLIENT_ID = "c" * 32_760  # with a uuid after it, longer than a string of an old version can be
GROUP = "a group of long names!"  # DescribeGroups v0 of it is as long as three ApiVersions of version 0


def named(client_id: str, request: Message, version: int, correlation_id: int) -> bytes:
    """A request of an old version with a client id."""
    raw = client_id.encode()
    start = struct.pack(">hhih", request.API_KEY, version, correlation_id, len(raw)) + raw
    return framed(start + encode(request, version))


def joining() -> JoinGroupRequest:
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    return JoinGroupRequest(group_id=GROUP, session_timeout_ms=10_000, protocol_type="consumer", protocols=protocols)


@pytest.fixture(scope="module", autouse=True)
def _coordinator(victim: Victim) -> None:
    """The group has one, or nobody would get so far as to join."""
    with Attacker(victim.address) as client:
        deadline = time.monotonic() + 20
        while client.ask(DescribeGroupsRequest(groups=[GROUP]), 0).groups[0].error_code != ErrorCode.NONE:
            assert time.monotonic() < deadline
            client.ask(FindCoordinatorRequest(key=GROUP), 0)


@pytest.mark.parametrize("version", range(6))
def test_a_member_with_a_client_id_too_long_for_its_member_id_is_answered(victim: Victim, version: int) -> None:
    """The member id is the client id, as much of it as there is room for, and a uuid."""
    # Members that went away before may have to be waited for, until their sessions end.
    with unharmed(victim), Attacker(victim.address, wait_s=60) as attacker:
        attacker.send(named(LONG_CLIENT_ID, joining(), version, 1))
        content = attacker.answer()
        assert isinstance(content, bytes)
        answer, _ = decode(JoinGroupResponse, version, content, 4)
        assert answer.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED)
        assert re.fullmatch("c{32730}-[0-9a-f-]{36}", answer.member_id)


def test_an_answer_of_another_is_never_sent(victim: Victim) -> None:
    """A connection whose answer could not be made went on in the buffer that all share, at the same position."""
    theirs = frame(ApiVersionsRequest(), 0, correlation_id=0x5EC2E7)
    question = frame(DescribeGroupsRequest(groups=[GROUP]), 0, correlation_id=2)
    assert len(question) % len(theirs) == 0, "or the thief would have to find where a frame begins"
    with Attacker(victim.address) as other, Attacker(victim.address) as member:
        member.send(named(LONG_CLIENT_ID, joining(), 0, 1))
        member.answer_or_silence(0.5)
        with Attacker(victim.address, wait_s=2) as thief:
            thief.send(question)
            thief.answer_or_silence(1)
            other.send(theirs * 50)
            for _ in range(50):
                assert other.answer()[:4] == struct.pack(">i", 0x5EC2E7)
            thief.send(bytes(len(theirs)))
            stolen = thief.answer_or_silence(1)
            assert not isinstance(stolen, bytes), stolen
