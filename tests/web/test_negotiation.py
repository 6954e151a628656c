"""Media types, and listeners as they are written."""

from __future__ import annotations

import pytest

from moldau.web.listening import InvalidListener, Listener, parse_listeners
from moldau.web.negotiation import JSON, REGISTRY, preferred

OLD = "application/vnd.schemaregistry+json"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", REGISTRY),
        ("*/*", REGISTRY),
        ("application/*", REGISTRY),
        ("application/json", JSON),
        ("application/json; q=0.5, application/vnd.schemaregistry+json", OLD),
        ("application/vnd.schemaregistry.v1+json, application/vnd.schemaregistry+json, application/json", REGISTRY),
        ("APPLICATION/JSON", JSON),
        ("text/html, */*;q=0.1", REGISTRY),
        ("*/*;q=0.5, application/json;q=0", REGISTRY),
        ("text/html", None),
        ("application/json;q=0", None),
        ("application/json;q=x", None),
        (",,;", None),
    ],
)
def test_what_is_answered(accept: str, expected: str | None) -> None:
    assert preferred(accept, [REGISTRY, OLD, JSON]) == expected


def test_listeners() -> None:
    found = parse_listeners("http://0.0.0.0:8081, https://[::1]:8443/,http://:0")
    assert found == [Listener("http", "0.0.0.0", 8081), Listener("https", "::1", 8443), Listener("http", "0.0.0.0", 0)]
    assert found[1].url == "https://[::1]:8443"


@pytest.mark.parametrize("text", ["", "localhost:8081", "ftp://a:1", "http://a", "http://a:70000", "http://a:b"])
def test_what_is_no_listener(text: str) -> None:
    with pytest.raises(InvalidListener, match="expected http://HOST:PORT"):
        parse_listeners(text)
