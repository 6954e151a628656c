"""SCRAM credentials in the metadata: who may be changed how, and what is kept of a password."""

from __future__ import annotations

import subprocess
import sys

import pytest

from moldau.controller.image import ClusterImage
from moldau.controller.machine import apply, snapshot_records
from moldau.controller.records import (
    ClusterCreated,
    Record,
    ScramCredentialRemoved,
    ScramCredentialSet,
    UnknownRecord,
    decode_records,
    encode_records,
)
from moldau.controller.settings.scram_credentials import (
    CredentialDeletion,
    CredentialUpsertion,
    CurrentFakes,
    ImageCredentials,
    UserCredentials,
    UserResult,
    decide_alter_scram_credentials,
    describe_scram_credentials,
    fake_credentials,
)
from moldau.core.errors import ErrorCode
from moldau.security.sasl.scram.client import ScramClient
from moldau.security.sasl.scram.credential import ScramCredential, ScramMechanism
from moldau.security.sasl.scram.keys import FakeCredentials, kafka_salt, make_credential, salted_password
from moldau.security.sasl.scram.server import ScramServer
from tests.controller.clusters import cluster
from tests.security.sasl.exchanges import run

SHA_256, SHA_512 = ScramMechanism
SALT = b"some-salt"


def upsertion(
    user: str, password: str = "secret", mechanism: int = SHA_256, iterations: int = 4096, salt: bytes = SALT
) -> CredentialUpsertion:
    salted = salted_password(SHA_512 if mechanism == SHA_512 else SHA_256, password, salt, 4096)
    return CredentialUpsertion(user, mechanism, iterations, salt, salted)


def alter(
    image: ClusterImage, *upsertions: CredentialUpsertion, deletions: tuple[CredentialDeletion, ...] = ()
) -> tuple[ClusterImage, list[UserResult]]:
    decision = decide_alter_scram_credentials(image, deletions, upsertions)
    return apply(image, decision.records), decision.reply


def with_users(*upsertions: CredentialUpsertion) -> ClusterImage:
    return alter(cluster(), *upsertions)[0]


def test_a_credential_is_kept_as_keys_and_not_as_a_password() -> None:
    decision = decide_alter_scram_credentials(cluster(), [], [upsertion("alice")])
    credential = make_credential(SHA_256, "secret", salt=SALT, iterations=4096)
    assert decision.records == (ScramCredentialSet("alice", SHA_256, credential),)
    assert decision.reply == [UserResult("alice")]
    assert upsertion("alice").salted_password not in encode_records(decision.records)


def test_a_user_logs_in_with_what_was_set() -> None:
    image = with_users(upsertion("alice"), upsertion("bob", mechanism=SHA_512))
    credentials = ImageCredentials(lambda: image)
    for user, mechanism in (("alice", SHA_256), ("bob", SHA_512)):
        client = ScramClient(mechanism, user, "secret", "client")
        assert run(client, ScramServer(mechanism, credentials, FakeCredentials(b"x"), "server")).user == user
    assert credentials.lookup("alice", SHA_512) is None
    assert credentials.lookup("nobody", SHA_256) is None


def test_a_password_is_changed_and_one_mechanism_does_not_touch_the_other() -> None:
    image = with_users(upsertion("alice"))
    image, _ = alter(image, upsertion("alice", mechanism=SHA_512))
    before = image.scram_credentials["alice"]
    image, _ = alter(image, upsertion("alice", "other"))
    after = image.scram_credentials["alice"]
    assert after[SHA_512] == before[SHA_512]
    assert after[SHA_256] == make_credential(SHA_256, "other", salt=SALT, iterations=4096)
    image, results = alter(image, deletions=(CredentialDeletion("alice", SHA_256),))
    assert (list(image.scram_credentials["alice"]), results) == ([SHA_512], [UserResult("alice")])
    image, _ = alter(image, deletions=(CredentialDeletion("alice", SHA_512),))
    assert image.scram_credentials == {}


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (upsertion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (upsertion("u", mechanism=0), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (upsertion("u", mechanism=3), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (upsertion("u", iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        (upsertion("u", iterations=16385), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
        (
            upsertion("u", salt=bytes(1025)),
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            "The salt has 1025 bytes; at most 1024 are allowed",
        ),
        (
            CredentialUpsertion("u", SHA_256, 4096, b"salt", b""),
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            "Salt and salted password must not be empty",
        ),
    ],
)
def test_a_credential_that_is_not_acceptable(wrong: CredentialUpsertion, error: ErrorCode, message: str) -> None:
    decision = decide_alter_scram_credentials(cluster(), [], [wrong, upsertion("good", iterations=16384)])
    assert decision.reply == [UserResult("good"), UserResult(wrong.user, error, message)]
    assert [record.user for record in decision.records] == ["good"]


def test_what_is_not_there_can_not_be_taken_away() -> None:
    image = with_users(upsertion("alice"))
    deletions = [CredentialDeletion("alice", SHA_512), CredentialDeletion("bob", SHA_256), CredentialDeletion("c", 9)]
    decision = decide_alter_scram_credentials(image, deletions, [])
    missing = (ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
    assert decision.reply == [
        UserResult("alice", *missing),
        UserResult("bob", *missing),
        UserResult("c", ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
    ]
    assert decision.records == ()


def test_a_user_is_altered_once_in_a_request() -> None:
    image = with_users(upsertion("alice"), upsertion("bob"))
    twice = (ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
    for deletions, upsertions in (
        ([CredentialDeletion("alice", SHA_256)] * 2, []),
        ([CredentialDeletion("alice", SHA_256)], [upsertion("alice")]),
        ([], [upsertion("alice"), upsertion("alice", mechanism=SHA_512)]),
        ([], [upsertion("alice")] * 3),
    ):
        decision = decide_alter_scram_credentials(image, deletions, [*upsertions, upsertion("bob", "new")])
        assert decision.reply == [UserResult("bob"), UserResult("alice", *twice)]
        assert [record.user for record in decision.records] == ["bob"]
    missing_first = decide_alter_scram_credentials(image, [CredentialDeletion("c", SHA_256)], [upsertion("c")])
    assert missing_first.reply[0].error is ErrorCode.RESOURCE_NOT_FOUND


def test_users_are_described_without_their_keys() -> None:
    image = with_users(upsertion("bob", iterations=8192), upsertion("alice"))
    image, _ = alter(image, upsertion("bob", mechanism=SHA_512))
    alice = UserCredentials("alice", iterations=[(SHA_256, 4096)])
    bob = UserCredentials("bob", iterations=[(SHA_256, 8192), (SHA_512, 4096)])
    assert describe_scram_credentials(image, None) == describe_scram_credentials(image, []) == [alice, bob]
    assert describe_scram_credentials(image, ["bob", "carol", "dave", "dave"]) == [
        bob,
        UserCredentials(
            "carol",
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to describe a user credential that does not exist: carol",
        ),
        UserCredentials(
            "dave",
            ErrorCode.DUPLICATE_RESOURCE,
            "Cannot describe SCRAM credentials for the same user twice in a single request: dave",
        ),
    ]


def test_a_snapshot_and_the_log_lead_to_the_same_image() -> None:
    image = with_users(upsertion("alice"), upsertion("bob"))
    image, _ = alter(image, upsertion("alice", mechanism=SHA_512), deletions=(CredentialDeletion("bob", SHA_256),))
    records: list[Record] = list(snapshot_records(image))
    assert apply(ClusterImage(), decode_records(encode_records(records))) == image
    assert [record for record in records if isinstance(record, ScramCredentialSet | ScramCredentialRemoved)] == [
        ScramCredentialSet("alice", mechanism, credential)
        for mechanism, credential in image.scram_credentials["alice"].items()
    ]


def test_an_image_that_was_published_does_not_change() -> None:
    image = with_users(upsertion("alice"))
    before = {user: dict(credentials) for user, credentials in image.scram_credentials.items()}
    alter(image, upsertion("bob"), deletions=(CredentialDeletion("alice", SHA_256),))
    assert image.scram_credentials == before


def test_metadata_without_credentials_is_readable() -> None:
    written = encode_records([ClusterCreated("cluster")])
    assert apply(ClusterImage(), decode_records(written)).scram_credentials == {}


def test_a_mechanism_of_a_later_version_is_not_misread() -> None:
    written = encode_records([ScramCredentialSet("u", SHA_256, ScramCredential(b"s", b"k", b"v", 4096))])
    later = written.replace(b"\xa1u\x01", b"\xa1u\x03")
    assert later != written
    with pytest.raises(UnknownRecord):
        decode_records(later)


def test_nothing_secret_is_shown() -> None:
    decision = decide_alter_scram_credentials(cluster(), [], [upsertion("alice")])
    record = decision.records[0]
    assert not [
        key for key in (record.credential.stored_key, record.credential.server_key) if str(key) in repr(decision)
    ]
    assert str(upsertion("alice").salted_password) not in repr(upsertion("alice"))


def test_a_broker_starts_without_the_modules_of_logins() -> None:
    listing = "import sys; import moldau.node.server, moldau.node.command; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True).stdout.split()
    light = {"moldau.security.sasl", "moldau.security.sasl.scram", "moldau.security.sasl.scram.credential"}
    assert {name for name in loaded if name.startswith("moldau.security.sasl")} == light
    assert not {"jwt", "cryptography", "moldau.security.jaas"} & set(loaded)


def test_made_up_credentials_come_from_a_secret_that_is_kept_with_the_first_user() -> None:
    def with_secret(image: ClusterImage, user: str, secret: bytes) -> ClusterImage:
        return apply(image, decide_alter_scram_credentials(image, (), [upsertion(user)], new_secret=secret).records)

    first = with_secret(cluster(), "alice", b"one")
    second = with_secret(first, "bob", b"another")
    assert fake_credentials(first) == fake_credentials(second)
    assert fake_credentials(first).secret == b"one"
    restored = apply(ClusterImage(), tuple(snapshot_records(second)))
    assert fake_credentials(restored) == fake_credentials(first)


def test_made_up_credentials_look_like_those_that_exist() -> None:
    """Salts and iterations are of the tool that made a user: others would tell who is made up."""
    users = [
        CredentialUpsertion("alice", ScramMechanism.SHA_256, 4_096, kafka_salt(1 << 129), b"x" * 32),
        CredentialUpsertion("bob", ScramMechanism.SHA_256, 8_192, bytes(range(64)), b"x" * 32),
        CredentialUpsertion("carol", ScramMechanism.SHA_512, 4_096, b"short", b"x" * 64),
    ]
    image = apply(cluster(), decide_alter_scram_credentials(cluster(), (), users, new_secret=b"one").records)
    fakes = CurrentFakes(lambda: image)
    assert fakes() is fakes()

    def shapes(mechanism: ScramMechanism) -> set[tuple[int, bool, int]]:
        made = [fakes().credential(f"user-{number}", mechanism) for number in range(200)]
        return {(len(each.salt), each.salt.isalnum(), each.iterations) for each in made}

    assert {(length // 20, iterations) for length, _, iterations in shapes(ScramMechanism.SHA_256)} == {
        (1, 4_096),
        (3, 8_192),
    }
    assert {(length, iterations) for length, _, iterations in shapes(ScramMechanism.SHA_512)} == {(5, 4_096)}
    twice = [fakes().credential("dave", ScramMechanism.SHA_256) for _ in range(2)]
    assert twice[0] == twice[1]


def test_nobody_sees_or_becomes_the_user_whose_credential_is_the_secret() -> None:
    decision = decide_alter_scram_credentials(cluster(), (), [upsertion("alice")], new_secret=b"one")
    assert decision.reply == [UserResult("alice")]
    image = apply(cluster(), decision.records)
    assert [each.user for each in describe_scram_credentials(image, None)] == ["alice"]
    assert describe_scram_credentials(image, [""])[0].error is ErrorCode.RESOURCE_NOT_FOUND
    assert ImageCredentials(lambda: image).lookup("", SHA_256) is None
    _, refused = alter(image, deletions=(CredentialDeletion("", SHA_256),))
    assert refused[0].error is ErrorCode.UNACCEPTABLE_CREDENTIAL
