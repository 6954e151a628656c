"""Whatever comes, a parser gives its declared errors, and soon; `scripts/fuzz-security` has long runs."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.security.fuzzing import BLOWN_UP_BYTES, PIECES, Target, noise, targets, try_one

NAMES = (
    "PLAIN", "SCRAM client first", "SCRAM client final", "SCRAM server final", "SCRAM server", "SCRAM server, proof",
    "SCRAM client, salt", "SCRAM client, verdict", "OAUTHBEARER server", "OAUTHBEARER client", "JWT", "JWKS",
    "DIGEST-MD5 client", "JAAS", "principal mapping rules", "cipher suites", "first users", "certificate",
    "distinguished name", "PEM trust store", "PEM key store", "PKCS12 key store",
)  # fmt: skip
SLOW = {
    "PKCS12 key store",
    "PEM key store",
    "cipher suites",
    "SCRAM client, salt",
}  # a derived key, or OpenSSL, in each
TRIES = 3  # of which one has to be fast: a busy machine is no finding


@cache
def target(name: str) -> Target:
    return all_targets()[name]


@cache
def all_targets() -> dict[str, Target]:
    return targets(Path(mkdtemp(prefix="moldau-fuzz-")))


def trouble_with(name: str, raw: bytes) -> str | None:
    found = None
    for _ in range(TRIES):
        found = try_one(name, target(name), raw)
        if found is None or " s for " not in found:
            return found
    return found


def test_every_parser_is_tried() -> None:
    assert set(all_targets()) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_is_read(name: str) -> None:
    """Or noise made of it would not get past the first byte."""
    good = 0
    for seed in target(name).seeds:
        try:
            target(name).read(seed)
        except target(name).errors:
            continue
        good += 1
    assert good or name in {"JWT", "SCRAM server final"}


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=100)
@given(seed=st.integers(0, 2**32), raw=st.binary(max_size=100))
def test_noise_is_refused_with_a_declared_error(name: str, seed: int, raw: bytes) -> None:
    chance = random.Random(seed)
    for _ in range(1 if name in SLOW else 10):
        assert trouble_with(name, noise(chance, target(name).seeds)) is None
    assert trouble_with(name, raw) is None


@pytest.mark.parametrize("name", [each for each in NAMES if each not in SLOW])
def test_half_a_megabyte_of_anything_takes_no_time(name: str) -> None:
    for piece in PIECES:
        for start in (b"", target(name).seeds[0], target(name).seeds[0][:20]):
            raw = start + piece * (BLOWN_UP_BYTES // len(piece))
            assert trouble_with(name, raw) is None
