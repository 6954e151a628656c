"""What is taken for a secret, and what is left of it where others read."""

from __future__ import annotations

import pytest

from moldau.spark.secrets import is_secret, masked, reference_of, with_variables


@pytest.mark.parametrize(
    "name",
    [
        "kafka.sasl.password", "kafka.sasl.jaas.config", "kafka.ssl.key.pem", "kafka.ssl.keystore.password",
        "kafka.sasl.oauthbearer.client.secret", "aws_secret_access_key", "kafka.ssl.keystore.key",
    ],
)  # fmt: skip
def test_secrets_are_known_by_their_names(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", ["kafka.sasl.username", "kafka.ssl.ca.location", "kafka.bootstrap.servers", "name"])
def test_other_settings_are_none(name: str) -> None:
    assert not is_secret(name)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://ann:hunter2@host/db is not there", "postgresql://ann:***@host/db is not there"),
        ("with (kafka.sasl.password = 'it''s', a = json)", "with (kafka.sasl.password = ***, a = json)"),
        ("host=db password=hunter2 user=ann", "host=db password=*** user=ann"),
        ('{"sasl.password": "hunter2", "x": 1}', '{"sasl.password": ***, "x": 1}'),
        ("unexpected token: a password is missing", "unexpected token: a password is missing"),
        ("topic orders at localhost:9092 is gone: 3 records", "topic orders at localhost:9092 is gone: 3 records"),
    ],
)  # fmt: skip
def test_what_is_shown_has_no_passwords(text: str, shown: str) -> None:
    assert masked(text) == shown


def test_a_reference_stands_for_the_value() -> None:
    variable, reference = reference_of("kafka.sasl.password")
    assert (variable, reference) == ("MOLDAU_KAFKA_SASL_PASSWORD", "${env:MOLDAU_KAFKA_SASL_PASSWORD}")
    assert with_variables(f"x{reference}", {variable: r"a\1b"}) == r"xa\1b"
