"""Principals as ACLs and settings spell them."""

from __future__ import annotations

import pytest

from moldau.security.principals import ANONYMOUS, Principal, deserialized, parse_principal, serialized


@pytest.mark.parametrize(
    ("text", "principal"),
    [
        ("User:alice", Principal("User", "alice")),
        ("User:CN=a,O=b", Principal("User", "CN=a,O=b")),
        ("Group:a:b", Principal("Group", "a:b")),
        ("User:", Principal("User", "")),
        (":", Principal("", "")),
    ],
)
def test_a_principal_is_a_type_and_a_name(text: str, principal: Principal) -> None:
    assert parse_principal(text) == principal
    assert str(principal) == text


@pytest.mark.parametrize("text", ["", "alice"])
def test_a_principal_has_a_type(text: str) -> None:
    with pytest.raises(ValueError, match="expected a string in format principalType:principalName but got " + text):
        parse_principal(text)


def test_brokers_tell_each_other_of_principals() -> None:
    by_token = Principal("User", "alice", is_by_token=True)
    assert deserialized(serialized(by_token)) == by_token
    assert str(by_token) == "User:alice"
    assert deserialized(serialized(ANONYMOUS)) == ANONYMOUS
