"""Java's names of cipher suites, judged by OpenSSL's own table."""

from __future__ import annotations

import subprocess

import pytest

from moldau.security.tls.cipher_suites import TLS13, openssl_name, parse_suites

OTHERS = ("PSK", "SRP", "anon", "NULL", "ARIA")


def test_every_suite_that_openssl_knows_has_its_name() -> None:
    printed = subprocess.run(
        ["openssl", "ciphers", "-stdname", "ALL:COMPLEMENTOFALL:eNULL@SECLEVEL=0"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    # Java has no ARIA; suites with a pre-shared key, SRP or without a certificate have no place in Kafka.
    table = [(line.split()[0], line.split()[2]) for line in printed.splitlines()]
    usual = [(java, name) for java, name in table if not any(word in java for word in OTHERS)]
    translated = [(java, openssl_name(java)) for java, _ in usual if java not in TLS13]
    assert len(translated) > 40
    assert translated == [(java, name) for java, name in usual if java not in TLS13]


@pytest.mark.parametrize("names", [(), ("",), ("TLS_EMPTY_RENEGOTIATION_INFO_SCSV",)])
def test_no_list_is_openssls_own_choice(names: tuple[str, ...]) -> None:
    assert parse_suites(names) is None


def test_openssls_names_are_taken_too() -> None:
    found = parse_suites(["ECDHE-RSA-AES256-GCM-SHA384", "TLS_AES_256_GCM_SHA384"])
    assert found is not None
    assert found.tls12 == ("ECDHE-RSA-AES256-GCM-SHA384",)
    assert found.tls13 == {"TLS_AES_256_GCM_SHA384"}
