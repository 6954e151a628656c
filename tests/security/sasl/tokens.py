"""Access tokens and the keys that sign them."""

from __future__ import annotations

import functools
import json
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tests.security.sasl.exchanges import NOW_MS

NOW_S = NOW_MS // 1_000
CLAIMS = {"sub": "alice", "iat": NOW_S - 10, "exp": NOW_S + 600, "scope": "kafka"}
CURVES = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")


@functools.cache
def private_key(algorithm: str = "RS256") -> Any:
    """One for all algorithms of RSA, and one for each curve."""
    if algorithm in CURVES:
        return ec.generate_private_key(CURVES[algorithm])
    return _rsa_key()


@functools.cache
def _rsa_key(bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65_537, bits)


def jwk(algorithm: str = "RS256", **members: Any) -> dict[str, Any]:
    family = jwt.algorithms.ECAlgorithm if algorithm in CURVES else jwt.algorithms.RSAAlgorithm
    found: dict[str, Any] = json.loads(family.to_jwk(private_key(algorithm).public_key()))
    found.pop("key_ops", None)
    return found | members


def jwks(*keys: dict[str, Any]) -> bytes:
    return json.dumps({"keys": list(keys)}).encode()


def token(algorithm: str = "RS256", *, header: dict[str, Any] | None = None, key: Any = None, **claims: Any) -> str:
    """Signed; a claim of None is left out."""
    all_claims = {name: value for name, value in (CLAIMS | claims).items() if value is not None}
    return jwt.PyJWS().encode(
        json.dumps(all_claims).encode(), private_key(algorithm) if key is None else key, algorithm, headers=header
    )
