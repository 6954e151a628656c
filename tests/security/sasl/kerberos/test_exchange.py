"""Both halves of GSSAPI with a real KDC between them: who is let in, who is not, and what hostile tokens do."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.security.sasl.kerberos.exchange import (
    NO_LAYER_WITHOUT_SIZE,
    TOKENS_MAX,
    GssapiClient,
    GssapiServer,
)
from moldau.security.sasl.kerberos.library import (
    Acceptor,
    Context,
    Initiator,
    KerberosUnusable,
    Keytab,
    _shown,
    default_realm,
)
from moldau.security.sasl.kerberos.short_names import ShortNamer, parse_rules
from moldau.security.sasl.mechanism import Challenge, SaslError, Success
from tests.kerberos import REALM, Realm, in_realm
from tests.security.sasl.exchanges import NOW_MS, challenge, run

SERVICE = "kafka/localhost"
SEED = 7


@pytest.fixture(scope="module", autouse=True)
def belonging(realm: Realm) -> Iterator[None]:
    with in_realm(realm):
        yield


@pytest.fixture(scope="module")
def service(realm: Realm) -> Keytab:
    return Keytab(SERVICE, str(realm.add(SERVICE)))


@pytest.fixture(scope="module")
def alice(realm: Realm) -> Initiator:
    return Initiator("alice", str(realm.add("alice")))


def server(keytab: Keytab, *rules: str) -> GssapiServer:
    return GssapiServer(Acceptor.of(keytab).accept(), ShortNamer(parse_rules(rules or ("DEFAULT",)), REALM))


def client(who: Initiator, host: str = "localhost") -> GssapiClient:
    return GssapiClient(who.begin("kafka", host))


def first_token(who: Initiator) -> bytes:
    response = client(who).evaluate(b"")
    assert response is not None
    return response.token


def plainly(who: Initiator) -> Any:
    """A context of the kind that Java's clients have, which do not ask the server for a proof."""
    from gssapi import raw

    credentials = raw.acquire_cred_from(who._store(), None, None, [raw.MechType.kerberos], "initiate").creds
    target = raw.import_name(b"kafka@localhost", raw.NameType.hostbased_service)
    flags = [raw.RequirementFlag.integrity]
    return raw.init_sec_context(target, credentials, None, raw.MechType.kerberos, flags)


def answering(keytab: Keytab, who: Initiator, message: bytes) -> Challenge | Success:
    """The server's verdict on what a client says about the security layer."""
    from gssapi import raw

    begun = plainly(who)
    offer = challenge(server(keytab), begun.token)
    assert raw.unwrap(begun.context, offer.token).message == NO_LAYER_WITHOUT_SIZE
    return offer.next.evaluate(raw.wrap(begun.context, message, False).message, NOW_MS)


def test_a_client_with_a_ticket_is_the_user_of_its_principal(service: Keytab, alice: Initiator) -> None:
    assert run(client(alice), server(service)) == Success("alice", token=None)


def test_a_rule_says_who_a_principal_is(service: Keytab, alice: Initiator, realm: Realm) -> None:
    assert run(client(alice), server(service, "RULE:[1:$1@$0]s/@.*/-of-here/U")).user == "ALICE-OF-HERE"
    broker = Initiator(SERVICE, service.path)
    assert run(client(broker), server(service, "RULE:[2:$1-$2]")).user == "kafka-localhost"


def test_a_principal_without_a_rule_is_not_let_in(service: Keytab, alice: Initiator) -> None:
    with pytest.raises(SaslError, match=r"no rule .* applies to 'alice@MOLDAU.TEST'"):
        run(client(alice), server(service, "RULE:[2:$1]"))


def test_a_client_that_wants_no_proof_gets_the_offer_at_once(service: Keytab, alice: Initiator) -> None:
    assert answering(service, alice, NO_LAYER_WITHOUT_SIZE) == Success("alice", token=None)


def test_an_authorization_id_makes_nobody_another(service: Keytab, alice: Initiator) -> None:
    for authzid in (b"alice@MOLDAU.TEST", b"kafka@localhost", b"admin", b"\xff" * 10_000):
        assert answering(service, alice, NO_LAYER_WITHOUT_SIZE + authzid) == Success("alice", token=None)


@pytest.mark.parametrize("message", [b"", b"\x01", b"\x01\0\0", b"\0\0\0\0", b"\x02\0\0\0", b"\x04\xff\xff\xff"])
def test_a_security_layer_that_was_not_offered_is_refused(message: bytes, service: Keytab, alice: Initiator) -> None:
    with pytest.raises(SaslError, match="security layer"):
        answering(service, alice, message)


def test_a_client_says_nothing_where_it_has_nothing_to_say(service: Keytab, alice: Initiator) -> None:
    proof = challenge(server(service), first_token(alice))
    with pytest.raises(SaslError, match="3 bytes where the client has nothing to say"):
        proof.next.evaluate(b"abc", NOW_MS)


def test_a_replay_is_refused(service: Keytab, alice: Initiator) -> None:
    token = first_token(alice)
    challenge(server(service), token)
    with pytest.raises(SaslError, match="replay"):
        server(service).evaluate(token, NOW_MS)


def test_no_token_of_strangers_does_anything_but_fail(service: Keytab, alice: Initiator) -> None:
    chance = random.Random(SEED)
    good = first_token(alice)
    spnego = bytes.fromhex("604806062b0601050502a03e303ca00e300c060a2b06010401823702020a")
    tokens = [b"", b"\0", b"abc", b"`" * 100_000, spnego, good[:-1], good[: len(good) // 2], good[1:], good + b"\0"]
    tokens += [chance.randbytes(chance.randint(1, 2_000)) for _ in range(200)]
    for _ in range(200):
        changed = bytearray(good)
        changed[chance.randrange(40, len(changed))] ^= 1 << chance.randrange(8)
        tokens.append(bytes(changed))
    for token in tokens:
        with pytest.raises(SaslError):
            server(service).evaluate(token, NOW_MS)


def test_an_agreement_that_was_changed_on_its_way_is_refused(service: Keytab, alice: Initiator) -> None:
    from gssapi import raw

    begun = plainly(alice)
    offer = challenge(server(service), begun.token)
    token = bytearray(raw.wrap(begun.context, NO_LAYER_WITHOUT_SIZE, False).message)
    token[-1] ^= 1
    with pytest.raises(SaslError):
        offer.next.evaluate(bytes(token), NOW_MS)


class Endless:
    """A context that always wants one more token."""

    is_complete = is_mutual = False
    peer = ""

    def step(self, token: bytes) -> bytes:
        return b"more"

    def wrap(self, message: bytes) -> bytes:
        raise AssertionError

    unwrap = wrap


def test_a_context_that_is_never_established_ends() -> None:
    state: Any = GssapiServer(Endless(), ShortNamer((), REALM))
    for _ in range(TOKENS_MAX - 1):
        state = state.evaluate(b"x", NOW_MS).next
    with pytest.raises(SaslError, match=f"not established after {TOKENS_MAX} tokens"):
        state.evaluate(b"x", NOW_MS)
    response = GssapiClient(Endless()).evaluate(b"")
    for _ in range(TOKENS_MAX - 1):
        assert response is not None
        response = response.next.evaluate(b"x")
    assert response is not None
    with pytest.raises(SaslError, match=f"not established after {TOKENS_MAX} tokens"):
        response.next.evaluate(b"x")


def test_a_ticket_for_another_service_is_refused(service: Keytab, realm: Realm, alice: Initiator) -> None:
    other = Keytab("kafka/elsewhere", str(realm.add("kafka/elsewhere")))
    with pytest.raises(SaslError, match="kafka/localhost"):
        run(client(alice), server(other))


def test_any_service_of_a_key_table_may_be_meant(realm: Realm, service: Keytab, alice: Initiator) -> None:
    assert run(client(alice), server(Keytab("*", service.path))).user == "alice"


def test_a_new_key_is_taken_without_a_restart(realm: Realm, alice: Initiator) -> None:
    keytab = Keytab("kafka/rotated", str(realm.add("kafka/rotated")))
    acceptor = Acceptor.of(keytab)
    names = ShortNamer(parse_rules(["DEFAULT"]), REALM)
    assert run(client(alice, "rotated"), GssapiServer(acceptor.accept(), names)).user == "alice"
    realm.admin("cpw", "-randkey", "kafka/rotated")
    later = Initiator("bob", str(realm.add("bob")))
    with pytest.raises(SaslError, match="kvno 2"):
        run(client(later, "rotated"), GssapiServer(acceptor.accept(), names))
    realm.export("kafka/rotated", Path(keytab.path))
    assert run(client(later, "rotated"), GssapiServer(acceptor.accept(), names)).user == "bob"
    assert run(client(alice, "rotated"), GssapiServer(acceptor.accept(), names)).user == "alice", (
        "by a ticket of before"
    )


def refused(keytab: Keytab) -> str:
    with pytest.raises(KerberosUnusable) as wrong:
        Acceptor.of(keytab)
    assert "\n" not in str(wrong.value)
    return str(wrong.value)


def test_a_key_that_is_not_there_is_told_before_anybody_needs_it(realm: Realm, service: Keytab, tmp_path: Path) -> None:
    nowhere, damaged, empty = (tmp_path / name for name in ("nowhere", "damaged", "empty"))
    damaged.write_bytes(b"no key table")
    empty.write_bytes(b"")
    assert f"Key table file '{nowhere}' not found" in refused(Keytab(SERVICE, str(nowhere)))
    assert "No key table entry found for kafka/other@MOLDAU.TEST" in refused(Keytab("kafka/other", service.path))
    assert "Unsupported key table format" in refused(Keytab(SERVICE, str(damaged)))
    assert refused(Keytab(SERVICE, str(empty)))
    with pytest.raises(KerberosUnusable, match="No key table entry found for kafka/other"):
        Initiator("kafka/other", service.path).check()


def test_the_kdc_says_who_it_does_not_know(realm: Realm, service: Keytab, alice: Initiator) -> None:
    stranger = realm.add("stranger")
    realm.admin("delprinc", "-force", "stranger")
    with pytest.raises(SaslError, match=r"'stranger@MOLDAU\.TEST' not found in Kerberos database"):
        client(Initiator("stranger", str(stranger)))
    with pytest.raises(SaslError, match=r"kafka/nowhere@MOLDAU\.TEST not found in Kerberos database"):
        client(alice, "nowhere").evaluate(b"")


def test_a_kdc_that_is_down_is_told(realm: Realm, service: Keytab) -> None:
    carol = Initiator("carol", str(realm.add("carol")))
    realm.stop()
    try:
        with pytest.raises(SaslError, match="Cannot contact any KDC"):
            client(carol)
    finally:
        realm.start()
    assert run(client(carol), server(service)).user == "carol"


def test_tickets_that_are_kept_need_no_kdc(realm: Realm, service: Keytab, alice: Initiator) -> None:
    run(client(alice), server(service))
    realm.stop()
    try:
        assert run(client(alice), server(service)).user == "alice"
    finally:
        realm.start()


def test_tickets_of_a_cache_serve_whoever_has_no_key(realm: Realm, service: Keytab, alice: Initiator) -> None:
    assert alice.keytab is not None
    cache = realm.ticket("alice", Path(alice.keytab))
    assert run(client(Initiator(None, ticket_cache=str(cache))), server(service)).user == "alice"
    assert run(client(Initiator("alice", ticket_cache=str(cache))), server(service)).user == "alice"
    with pytest.raises(SaslError, match="Principal in credential cache does not match"):
        client(Initiator("bob", ticket_cache=str(cache)))
    with pytest.raises(SaslError, match="No Kerberos credentials"):
        client(Initiator(None))


def until(moment_s: float) -> None:
    while time.time() < moment_s:
        time.sleep(0.05)


@pytest.fixture
def strict(realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From the call on, this process allows clocks to differ by a second."""
    config = tmp_path / "krb5.conf"
    config.write_text(realm.config.read_text().replace("[libdefaults]", "[libdefaults]\n    clockskew = 1"))
    return lambda: monkeypatch.setenv("KRB5_CONFIG", str(config))


def test_a_ticket_that_has_ended_is_refused(realm: Realm, service: Keytab, strict: Callable[[], None]) -> None:
    keytab = realm.add("shortly")
    cache = realm.ticket("shortly", keytab, "-l", "2s")
    who = Initiator("shortly", ticket_cache=str(cache))
    token, ends_s = first_token(who), time.time() + 2
    strict()
    until(ends_s + 2.5)
    with pytest.raises(SaslError, match=r"Ticket expired|Clock skew too great"):
        server(service).evaluate(token, NOW_MS)
    with pytest.raises(SaslError, match=r"Ticket expired|No Kerberos credentials"):
        client(who).evaluate(b"")


def test_a_clock_that_is_wrong_is_told(service: Keytab, alice: Initiator, strict: Callable[[], None]) -> None:
    token = first_token(alice)
    strict()
    until(time.time() + 2.5)
    with pytest.raises(SaslError, match="Clock skew too great"):
        server(service).evaluate(token, NOW_MS)


def test_a_key_gets_new_tickets_when_the_old_ones_end(realm: Realm, service: Keytab) -> None:
    who = Initiator("renewed", str(realm.add("renewed", "-maxlife", "2s")))
    assert run(client(who), server(service)).user == "renewed"
    until(time.time() + 3)
    assert run(client(who), server(service)).user == "renewed"


def test_the_default_realm_is_that_of_the_configuration(
    realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert default_realm() == REALM
    without = tmp_path / "krb5.conf"
    without.write_text("[libdefaults]\n    dns_lookup_realm = false\n")
    monkeypatch.setenv("KRB5_CONFIG", os.fspath(without))
    assert default_realm() == ""


def test_a_server_that_proves_nothing_is_refused(service: Keytab, alice: Initiator) -> None:
    """It has no key, and can only repeat what it is told."""
    response = client(alice).evaluate(b"")
    assert response is not None
    for forged in (b"", b"abc", response.token):
        fresh = client(alice).evaluate(b"")
        assert fresh is not None
        with pytest.raises(SaslError):
            fresh.next.evaluate(forged)


def test_a_client_takes_no_security_layer_but_none(service: Keytab, alice: Initiator) -> None:
    context: Context = Acceptor.of(service).accept()
    response = client(alice).evaluate(b"")
    assert response is not None
    proven = response.next.evaluate(context.step(response.token))
    assert proven is not None
    assert proven.token == b""
    with pytest.raises(SaslError, match="does not offer a connection without a security layer"):
        proven.next.evaluate(context.wrap(b"\x06\0\x10\0"))


def test_principals_that_are_no_utf_8_never_look_alike() -> None:
    """MIT's KDC gives them no tickets, and others may."""
    from gssapi import raw

    for name in (b"\xff@MOLDAU.TEST", b"\xfe@MOLDAU.TEST"):
        with pytest.raises(SaslError, match="no UTF-8"):
            _shown(raw, raw.import_name(name, raw.NameType.kerberos_principal))
    assert _shown(raw, raw.import_name("žofie@R".encode(), raw.NameType.kerberos_principal)) == "žofie@R"
