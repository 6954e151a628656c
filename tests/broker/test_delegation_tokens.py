"""What a secret makes of tokens: HMACs as Apache Kafka computes them, and logins."""

from __future__ import annotations

import base64

import pytest
from msgspec.structs import replace

from moldau.broker.delegation_tokens import DelegationTokens
from moldau.controller.image import ClusterImage
from moldau.controller.machine import apply
from moldau.controller.records import DelegationTokenRemoved, DelegationTokenSet, encode_records
from moldau.controller.settings.scram_credentials import ImageCredentials, fake_credentials
from moldau.security.delegation_tokens import DelegationToken
from moldau.security.principals import Principal
from moldau.security.sasl.mechanism import Challenge, SaslError
from moldau.security.sasl.scram.client import ScramClient
from moldau.security.sasl.scram.credential import ScramMechanism
from moldau.security.sasl.scram.server import ScramServer
from tests.security.sasl.exchanges import run

ALICE = Principal("User", "alice")
NOW_MS = 1_000_000
TOKEN = DelegationToken("t1", ALICE, ALICE, (), NOW_MS, NOW_MS + 10_000, NOW_MS + 1_000)


class World:
    def __init__(self, secret: str = "hush") -> None:
        self.image = apply(ClusterImage(), [DelegationTokenSet(TOKEN), DelegationTokenSet(replace(TOKEN, id="t2"))])
        self.tokens = DelegationTokens(secret, lambda: self.image)

    def server(self, mechanism: ScramMechanism = ScramMechanism.SHA_256) -> ScramServer:
        credentials = ImageCredentials(lambda: self.image)
        return ScramServer(mechanism, credentials, fake_credentials(self.image), "server", self.tokens)

    def password(self, token_id: str = "t1") -> str:
        return base64.b64encode(self.tokens.hmac(token_id)).decode()


def test_the_hmac_is_kafkas() -> None:
    # By OpenSSL, as by javax.crypto.Mac: HmacSHA512 with the key `hush` over `t1`.
    expected = "pbU4jSuDHMOQAtS4LUElJFaQpSSBl44/q9u2tw/urHrPytc5nUv1oX8oElCu33SwQBRPEBUjyEBgdFzQoGgm3Q=="
    assert World().password() == expected


def test_a_token_is_found_by_its_hmac_as_long_as_it_is_there() -> None:
    world = World()
    hmac = world.tokens.hmac("t1")
    assert world.tokens.id_of(hmac) == "t1"
    assert DelegationTokens("another", lambda: world.image).id_of(hmac) is None
    world.image = apply(world.image, [DelegationTokenRemoved("t1"), DelegationTokenSet(replace(TOKEN, id="t3"))])
    assert [world.tokens.id_of(world.tokens.hmac(each)) for each in ("t1", "t2", "t3")] == [None, "t2", "t3"]


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_a_login_is_for_the_owner(mechanism: ScramMechanism) -> None:
    world = World()
    for _ in range(2):
        client = ScramClient(mechanism, "t1", world.password(), "client", is_by_token=True)
        success = run(client, world.server(mechanism), NOW_MS)
        assert (success.user, success.is_by_token) == ("alice", True)
        assert success.credential_expires_ms == TOKEN.expires_ms


def test_a_login_by_what_is_not_the_token() -> None:
    world = World()
    for token_id, password in (("t1", world.password("t2")), ("t4", world.password("t4")), ("alice", "hush")):
        with pytest.raises(SaslError):
            run(ScramClient(ScramMechanism.SHA_256, token_id, password, "c", is_by_token=True), world.server(), NOW_MS)
    with pytest.raises(SaslError):  # nobody of this name, without the extension
        run(ScramClient(ScramMechanism.SHA_256, "t1", world.password(), "c"), world.server(), NOW_MS)


def test_a_token_of_a_group_logs_in_nobody_of_its_name() -> None:
    world = World()
    world.image = apply(world.image, [DelegationTokenSet(replace(TOKEN, owner=Principal("Group", "alice")))])
    client = ScramClient(ScramMechanism.SHA_256, "t1", world.password(), "client", is_by_token=True)
    with pytest.raises(SaslError):
        run(client, world.server(), NOW_MS)


def test_a_token_that_is_gone_or_has_expired_logs_nobody_in() -> None:
    world = World()
    client = ScramClient(ScramMechanism.SHA_256, "t1", world.password(), "client", is_by_token=True)
    assert run(client, world.server(), NOW_MS).user == "alice"
    with pytest.raises(SaslError):
        run(client, world.server(), TOKEN.expires_ms)
    world.image = apply(world.image, [DelegationTokenSet(replace(TOKEN, expires_ms=NOW_MS + 5_000))])
    assert run(client, world.server(), TOKEN.expires_ms).credential_expires_ms == NOW_MS + 5_000
    world.image = apply(world.image, [DelegationTokenRemoved("t1")])
    with pytest.raises(SaslError):
        run(client, world.server(), NOW_MS)


def test_a_challenge_does_not_tell_whether_a_token_exists() -> None:
    world = World()

    def challenge() -> bytes:
        asked = world.server().evaluate(b"n,,n=t1,r=client,tokenauth=true", NOW_MS)
        assert isinstance(asked, Challenge)
        return asked.token

    there = challenge()
    world.image = apply(world.image, [DelegationTokenRemoved("t1")])
    assert challenge() == there


def test_neither_metadata_nor_words_hold_a_secret() -> None:
    world = World()
    hmac = world.tokens.hmac("t1")
    world.tokens.lookup("t1", ScramMechanism.SHA_256)
    stored = encode_records([*map(DelegationTokenSet, world.image.delegation_tokens.values())])
    assert hmac not in stored
    said = f"{world.tokens!r} {world.server()!r} {world.tokens.lookup('t1', ScramMechanism.SHA_256)!r}"
    assert not any(each in said for each in ("hush", world.password(), repr(hmac)))
