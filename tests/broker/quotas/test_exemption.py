"""The time that requests between brokers take is no client's, as long as it is a broker that asks."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.broker.authorization import Authorization
from moldau.broker.context import Peer
from moldau.broker.fetching.fetch_sessions import FetchSessions
from moldau.broker.handlers.fetch import fetch
from moldau.broker.handlers.write_txn_markers import write_txn_markers
from moldau.broker.quotas.throttling import Throttling
from moldau.broker.requests.dispatch import Dispatch, Muted
from moldau.broker.requests.refusals import guarded
from moldau.controller.image import ClusterImage
from moldau.security.acls.authorizer import Authorizer
from moldau.security.principals import Principal
from moldau.wire.codec import encode_parts, is_flexible
from moldau.wire.frame import SIZE_BYTES, RequestHeader, request_parts
from moldau.wire.messages import FetchRequest, WriteTxnMarkersRequest
from moldau.wire.schema import Message

PAUSE_MS = 60_000
VERSIONS: dict[type[Message], int] = {FetchRequest: 12, WriteTxnMarkersRequest: 1}
BROKER, CAROL = Principal("User", "broker"), Principal("User", "carol")


class ExceededQuotas:
    """Every client is above its quota of time; fetched bytes are not limited."""

    counts_time = True

    def took(self, *_: object) -> int:
        return PAUSE_MS

    def fetch_bytes_max(self, _: object) -> None:
        return None


def pauses(request: Message, principal: Principal, *, has_authorizer: bool = True) -> bool:
    async def asked() -> bool:
        authorization = Authorization(Authorizer(super_users=frozenset({"User:broker"})))
        throttling = Throttling(ExceededQuotas())  # type: ignore[arg-type]
        services: Any = SimpleNamespace(
            api_versions=[],
            authorization=authorization if has_authorizer else None,
            controller=SimpleNamespace(image=ClusterImage()),
            clock=SimpleNamespace(elapsed_ms=lambda: 0),
            config=SimpleNamespace(int=lambda _: 1_000_000),
            fetch_sessions=FetchSessions(sessions_max=1, eviction_ms_min=0),
            forwarding=None,
            markers=SimpleNamespace(write=None),
            replication=SimpleNamespace(change_isr=None, sending=None),
            partitions=SimpleNamespace(all=list),
            quotas=throttling,
        )
        table = (write_txn_markers, fetch)
        dispatch = Dispatch(guarded(table, authorization) if has_authorizer else table, services)
        dispatch.limit(throttling)
        kind, version = type(request), VERSIONS[type(request)]
        header = RequestHeader(kind.API_KEY, version, 1, "app")
        parts = request_parts(header, encode_parts(request, version), is_flexible=is_flexible(kind, version))
        answer = dispatch.answer(memoryview(b"".join(parts))[SIZE_BYTES:], Peer("SECURED", "10.0.0.1", 1, principal))
        if isinstance(answer, Muted):
            answer.end()
            return True
        assert isinstance(answer, list), answer
        return False

    return asyncio.run(asked())


def test_a_broker_that_writes_markers_never_pauses() -> None:
    assert not pauses(WriteTxnMarkersRequest(), BROKER)
    assert not pauses(WriteTxnMarkersRequest(), CAROL, has_authorizer=False), "anybody may be a broker there"


def test_a_client_that_is_refused_to_write_markers_pays_for_its_time() -> None:
    assert pauses(WriteTxnMarkersRequest(), CAROL)


@pytest.mark.parametrize(("principal", "is_paused"), [(BROKER, False), (CAROL, True)], ids=["broker", "client"])
def test_a_replica_id_alone_makes_no_follower(principal: Principal, is_paused: bool) -> None:
    assert pauses(FetchRequest(replica_id=1, max_wait_ms=0), principal) is is_paused
