"""SCRAM's arithmetic (RFC 5802, section 3): keys from passwords, and the proof that one side knows them.

Passwords and names are their UTF-8 bytes, without SASLprep, as in Apache Kafka.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from moldau.security.sasl.scram.credential import ITERATIONS_MIN, ScramCredential, ScramMechanism

SALT_BITS = 130  # Kafka's tools make salts of so many random bits, written in base 36: 26 characters or a few less
SALT_CHARS_MIN, SALT_CHARS_MAX = 20, 26  # one in a billion is shorter
BASE_36 = "0123456789abcdefghijklmnopqrstuvwxyz"
_DIGITS = BASE_36.encode()


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)


def client_key(mechanism: ScramMechanism, salted: bytes) -> bytes:
    return hmac.digest(salted, b"Client Key", mechanism.hash_name)


def server_key(mechanism: ScramMechanism, salted: bytes) -> bytes:
    return hmac.digest(salted, b"Server Key", mechanism.hash_name)


def stored_key(mechanism: ScramMechanism, key: bytes) -> bytes:
    """Of a client key."""
    return hashlib.new(mechanism.hash_name, key).digest()


def signature(mechanism: ScramMechanism, key: bytes, auth_message: bytes) -> bytes:
    return hmac.digest(key, auth_message, mechanism.hash_name)


def xor(one: bytes, other: bytes) -> bytes:
    assert len(one) == len(other), "keys, proofs and signatures of a mechanism have one length"
    return (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).to_bytes(len(one), "big")


def is_proof(mechanism: ScramMechanism, credential: ScramCredential, auth_message: bytes, proof: bytes) -> bool:
    """Whether whoever made the proof knows the client key, in a time that does not depend on where it goes wrong."""
    if len(proof) != mechanism.key_bytes:
        return False
    proven = xor(proof, signature(mechanism, credential.stored_key, auth_message))
    return hmac.compare_digest(stored_key(mechanism, proven), credential.stored_key)


def credential_of(mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """What the server keeps of a salted password."""
    return ScramCredential(
        salt, stored_key(mechanism, client_key(mechanism, salted)), server_key(mechanism, salted), iterations
    )


def make_credential(mechanism: ScramMechanism, password: str, *, salt: bytes, iterations: int) -> ScramCredential:
    return credential_of(mechanism, salted_password(mechanism, password, salt, iterations), salt, iterations)


def kafka_salt(number: int) -> bytes:
    """As Kafka's tools write one: where lengths or first digits differed, they would tell who exists."""
    number %= 1 << SALT_BITS
    digits = ""
    while number or not digits:
        number, digit = divmod(number, len(BASE_36))
        digits = BASE_36[digit] + digits
    return digits.encode()


class Shape(NamedTuple):
    """What a challenge tells of a credential's origin: tools make salts of their own kinds."""

    salt_bytes: int
    """Of random bytes, as librdkafka makes 64; 0 for the digits of Kafka's tools."""
    iterations: int


KAFKA_SHAPE: Final = Shape(0, ITERATIONS_MIN)


def shape_of(credential: ScramCredential) -> Shape:
    is_kafkas = SALT_CHARS_MIN <= len(credential.salt) <= SALT_CHARS_MAX and not credential.salt.strip(_DIGITS)
    return Shape(0 if is_kafkas else len(credential.salt), credential.iterations)


@dataclass(frozen=True, slots=True)
class FakeCredentials:
    """Credentials of users that don't exist: the same for a name whenever and wherever it is asked for.

    All brokers of a cluster need the same secret, or the salts of two of them tell. Each looks like the credential of
    somebody who exists: which of the shapes that there are it has depends on the name, and on nothing else as long as
    the shapes stay the same. Real users of a shape that no made-up one has would stand out at the first look.

    Who asks again and again sees more, for a real user's challenge changes only with the password. So a name has the
    shape of the highest keyed hash: of n shapes, one that is added takes each (n + 1)th name to itself, and one that is
    removed gives its own names to others, and nobody else's challenge changes. A name that changes does so as if
    its password had been set anew: its salt has nothing of the one before. What is left to see is that many change in
    the same moment, once for each first user of a kind of tool or of a number of iterations.
    """

    secret: bytes = field(repr=False)
    shapes: Mapping[ScramMechanism, tuple[Shape, ...]] = field(default_factory=dict)

    def credential(self, user: str, mechanism: ScramMechanism) -> ScramCredential:
        asked = f"{mechanism.mechanism_name} {user}".encode()
        of_shapes = [
            (hmac.digest(self.secret, b"shape %d %d " % shape + asked, "sha256"), shape)
            for shape in self.shapes.get(mechanism) or (KAFKA_SHAPE,)
        ]
        chance, shape = max(of_shapes)
        chance = hmac.digest(self.secret, b"salt " + chance, "sha256")
        random = hashlib.shake_256(chance).digest(shape.salt_bytes)
        salt = random or kafka_salt(int.from_bytes(chance, "big"))
        key = hmac.digest(self.secret, b"key " + asked, mechanism.hash_name)
        return ScramCredential(salt, key, key, shape.iterations)
