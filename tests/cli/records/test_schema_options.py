"""What command lines, properties, the environment and profiles say of schemas, before anything is asked."""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from moldau.cli.connection import SERIALIZER_PROPERTIES, client_settings
from moldau.cli.main import main
from moldau.cli.profiles import user_file
from moldau.cli.records.schemas.connecting import open_registry
from moldau.cli.records.schemas.options import registry_url
from moldau.schemas.values import WRITING

URL = ("--registry", "http://registry:8081")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("XDG_CONFIG_HOME", "MOLDAU_REGISTRY", "MOLDAU_PROFILE", "MOLDAU_COMMAND_CONFIG"):
        monkeypatch.delenv(variable, raising=False)
    file = user_file({"HOME": str(tmp_path)})
    file.parent.mkdir(parents=True)
    file.write_text('profile = "staging"\n[profiles.staging]\nregistry = "http://profile:8081"\n')
    return tmp_path


def options(*properties: str, **given: Any) -> Namespace:
    usual = {"registry": None, "profile": None, "command_config": None, "bootstrap_server": None, "timeout": 5.0}
    return Namespace(**{**usual, "properties": properties, **given})


def test_what_wins(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert registry_url(options()) == "http://profile:8081"
    monkeypatch.setenv("MOLDAU_REGISTRY", "http://variable:8081")
    assert registry_url(options()) == "http://variable:8081"
    file = home / "client.properties"
    file.write_text("schema.registry.url=http://file:8081\n")
    assert registry_url(options(command_config=str(file))) == "http://file:8081"
    assert registry_url(options("schema.registry.url=http://x:8081", command_config=str(file))) == "http://x:8081"
    assert registry_url(options("schema.registry.url=http://x:8081", registry="http://line:8081")) == "http://line:8081"


def test_confluents_properties_are_the_registrys_and_not_the_clusters() -> None:
    """One file serves Kafka's clients, which refuse what they do not know, and serializers."""
    said = options(
        "schema.registry.url=http://x:8081,http://y:8081",
        "basic.auth.user.info=anna:hush",
        "auto.register.schemas=false",
        "schema.registry.ssl.truststore.location=ca.pem",
        "schema.registry.ssl.truststore.type=PEM",
        "linger.ms=5",
    )
    assert client_settings(said) == {
        "bootstrap.servers": "localhost:9092",
        "client.id": "moldau-cli",
        "linger.ms": "5",
    }
    registry = open_registry(said)
    assert registry.client.url == "http://x:8081, http://y:8081"
    assert not registry.writing.auto_register


def test_every_property_of_serializers_is_known() -> None:
    assert WRITING.keys() == SERIALIZER_PROPERTIES


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("consume", "a", "--registry", "ftp://x"), "--registry: Invalid URL 'ftp://x' of a schema registry"),
        (("consume", "a", *URL, "-X", "schema.registry.uri=x"), "Unknown setting 'uri' of the schema registry"),
        (("consume", "a", *URL, "-X", "basic.auth.user.info=anna"), "basic.auth.user.info has to be user:password"),
        (("produce", "a", *URL, "-X", "normalize.schemas=1", "--value-schema", "latest"), "expected true or false"),
        (("produce", "a", *URL, "--value-schema", "nosuch"), "no file 'nosuch'; expected a file, latest, id:N"),
        (("produce", "a", *URL, "--key-schema", "nosuch.avsc"), "--key-schema: cannot read nosuch.avsc: No such file"),
        (("produce", "a", *URL, "--value-schema", ""), "--value-schema: expected a file"),
        (
            ("produce", "a", *URL, "--value-schema", "order.txt"),
            "order.txt has none of the endings .avsc, .json, .proto",
        ),
        (("produce", "a", *URL, "--message", "Order"), "--message: of which schema? Give --value-schema"),
        (("produce", "a", *URL, "--key-message", "Order"), "--key-message: of which schema? Give --key-schema"),
        (("produce", "a", *URL, "--no-register"), "--no-register: of which schema?"),
        (("produce", "a", "--schema-reference", "a=b"), "'a=b' is no reference; expected NAME=SUBJECT:VERSION"),
    ],
    ids=" ".join,
)
def test_wrong_options_are_one_line(
    home: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], complaint: str
) -> None:
    (home / "order.txt").write_text('"string"')
    assert main([*arguments]) == 2
    told = capsys.readouterr().err
    assert complaint in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("consume", "a", "--strict"), "--strict: of which registry? Give --registry URL"),
        (("consume", "a", "--registry-for", "key"), "--registry-for: of which registry?"),
        (("produce", "a", "--value-schema", "latest"), "--value-schema: of which registry?"),
        (("produce", "a", "--key-schema", "latest"), "--key-schema: of which registry?"),
    ],
    ids=" ".join,
)
def test_schemas_need_a_registry(
    home: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], complaint: str
) -> None:
    user_file({"HOME": str(home)}).unlink()
    assert main([*arguments]) == 2
    assert complaint in capsys.readouterr().err


def test_without_a_registry_nothing_of_schemas_is_imported() -> None:
    listing = "import sys; import moldau.cli.records.consume, moldau.cli.records.produce; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True).stdout.split()
    assert not [name for name in loaded if name.startswith(("moldau.schemas", "google", "jsonschema"))]
