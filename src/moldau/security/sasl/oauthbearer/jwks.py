"""JSON Web Tokens checked against a set of keys (RFC 7515, 7517, 7519), which comes as data, from the configuration.

A token never says where its key is: the headers jku, x5u, jwk and x5c are not read. Algorithms are those of public keys
alone, so neither an unsigned token nor one that is signed with a public key as if it were a shared secret is taken.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt.utils import base64url_decode

from moldau.security.sasl.oauthbearer.token import BearerToken, ClaimRules, InvalidToken

RSA_BITS_MIN = 2_048  # RFC 7518, section 3.3
KEYS_MAX = 100  # a token without a key id is tried on all that fit
TOKEN_CHARS_MAX = 32_768  # before anything is decoded; providers keep tokens within HTTP headers, of 8 to 16 KiB

HEADER_CHARS_MAX = 2_048  # an algorithm and a key's name, read before any signature: its JSON is a stranger's
# Each algorithm with the type of its keys, and the curve of those that have one.
ALGORITHMS: Mapping[str, tuple[str, str | None]] = MappingProxyType(
    {
        "RS256": ("RSA", None),
        "RS384": ("RSA", None),
        "RS512": ("RSA", None),
        "PS256": ("RSA", None),
        "PS384": ("RSA", None),
        "PS512": ("RSA", None),
        "ES256": ("EC", "secp256r1"),
        "ES384": ("EC", "secp384r1"),
        "ES512": ("EC", "secp521r1"),
    }
)

_SIGNATURES = jwt.PyJWS(algorithms=list(ALGORITHMS))


class InvalidJwks(Exception):
    """A set of keys that can't be used; the text says why."""


@dataclass(frozen=True, slots=True)
class VerificationKey:
    key: RSAPublicKey | EllipticCurvePublicKey
    key_id: str | None
    algorithm: str | None
    """The only one that it may be used with; None for any that fits."""

    def fits(self, algorithm: str) -> bool:
        kind, curve = ALGORITHMS[algorithm]
        if self.algorithm not in (None, algorithm):
            return False
        if isinstance(self.key, RSAPublicKey):
            return kind == "RSA"
        return kind == "EC" and self.key.curve.name == curve


def read_jwks(data: bytes) -> tuple[VerificationKey, ...]:
    """The public keys that verify signatures; others are passed over, and a set without any is InvalidJwks."""
    try:
        keys = _json_object(data).get("keys")
    except ValueError as wrong:
        raise InvalidJwks(f"not a JSON Web Key Set: {wrong}") from None
    if not isinstance(keys, list):
        raise InvalidJwks("not a JSON Web Key Set: 'keys' is no list")
    if len(keys) > KEYS_MAX:
        raise InvalidJwks(f"{len(keys)} keys; at most {KEYS_MAX} are allowed")
    found = tuple(key for key in map(_verification_key, keys) if key is not None)
    if not found:
        raise InvalidJwks("no key in it verifies signatures by any of " + ", ".join(ALGORITHMS))
    return found


def _verification_key(jwk: object) -> VerificationKey | None:
    if not isinstance(jwk, dict) or jwk.get("kty") not in ("RSA", "EC") or jwk.get("use", "sig") != "sig":
        return None
    if "key_ops" in jwk and (not isinstance(jwk["key_ops"], list) or "verify" not in jwk["key_ops"]):
        return None
    algorithm, key_id = jwk.get("alg"), jwk.get("kid")
    if not isinstance(algorithm, str | None) or not isinstance(key_id, str | None):
        return None
    if algorithm is not None and algorithm not in ALGORITHMS:
        return None
    # A private key's members are left out: what signs has no business here, and would be read otherwise.
    public = {name: value for name, value in jwk.items() if name in ("kty", "n", "e", "crv", "x", "y")}
    family = jwt.algorithms.RSAAlgorithm if jwk["kty"] == "RSA" else jwt.algorithms.ECAlgorithm
    try:
        key = family.from_jwk(public)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError) as wrong:
        raise InvalidJwks(f"key {key_id!r} is damaged: {type(wrong).__name__}") from None
    if isinstance(key, RSAPublicKey) and key.key_size < RSA_BITS_MIN:
        raise InvalidJwks(f"key {key_id!r} has {key.key_size} bits; at least {RSA_BITS_MIN} are needed")
    if not isinstance(key, RSAPublicKey | EllipticCurvePublicKey):
        return None
    return VerificationKey(key, key_id, algorithm)


@dataclass(frozen=True, slots=True)
class JwtValidator:
    """Signature first, claims after: nothing is believed of a token that nobody signed."""

    keys: tuple[VerificationKey, ...]
    rules: ClaimRules = field(default_factory=ClaimRules)

    def validate(self, token: str, now_ms: int) -> BearerToken:
        return self.rules.check(_section(self._verified(token), "payload"), now_ms)

    def _verified(self, token: str) -> bytes:
        """The payload of a token that one of the keys signed."""
        if len(token) > TOKEN_CHARS_MAX:
            raise InvalidToken(f"{len(token)} characters; at most {TOKEN_CHARS_MAX} are allowed")
        sections = token.split(".")
        if len(sections) != 3 or not all(sections):
            raise InvalidToken("not a JWT: three sections, none of them empty, are expected")
        if len(sections[0]) > HEADER_CHARS_MAX:
            raise InvalidToken(f"a header of {len(sections[0])} characters; at most {HEADER_CHARS_MAX} are allowed")
        header = _section(_decoded(sections[0], "header"), "header")
        algorithm = header.get("alg")
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            raise InvalidToken("the algorithm is not one of " + ", ".join(ALGORITHMS))
        if "crit" in header or "b64" in header:
            raise InvalidToken("the header has extensions that must be understood, and none is")
        for key in self._candidates(algorithm, header.get("kid")):
            try:
                payload: bytes = _SIGNATURES.decode(token, key.key, algorithms=[algorithm])
            except (jwt.PyJWTError, ValueError, RecursionError):
                continue
            return payload
        raise InvalidToken("no key that fits the header verifies the signature")

    def _candidates(self, algorithm: str, key_id: object) -> Iterator[VerificationKey]:
        """Those of the token's key id, or all if it names none."""
        return (key for key in self.keys if key.fits(algorithm) and (key_id is None or key.key_id == key_id))


def _decoded(section: str, name: str) -> bytes:
    try:
        return base64url_decode(section)
    except ValueError:
        raise InvalidToken(f"the {name} is not base64") from None


def _section(data: bytes, name: str) -> dict[str, Any]:
    try:
        return _json_object(data)
    except ValueError as wrong:
        raise InvalidToken(f"the {name} is no JSON object: {wrong}") from None


def _json_object(data: bytes) -> dict[str, Any]:
    """ValueError unless it is one; a name that is given twice could be read in two ways, and is refused."""
    try:
        value = json.loads(data, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is given twice")
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
