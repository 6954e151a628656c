"""A registry by a tool's options: its URL, and what Confluent's clients are told by properties of the same names."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from moldau.cli.connection import SERIALIZER_PROPERTIES, client_settings, given_properties, is_of_registry
from moldau.cli.failures import CommandFailed, UsageError
from moldau.cli.java_settings import for_librdkafka
from moldau.cli.records.schemas.options import URL_PROPERTY, registry_url
from moldau.schemas.registry_client import RegistryClient, RegistryError, Settings
from moldau.schemas.registry_client.settings import PREFIX
from moldau.schemas.values import Writing

INHERITED = ("sasl.username", "sasl.password")  # for basic.auth.credentials.source=SASL_INHERIT


@dataclass(frozen=True, slots=True)
class Registry:
    client: RegistryClient
    writing: Writing


def open_registry(options: Namespace) -> Registry:
    """Nothing is asked yet."""
    given = {name: value for name, value in given_properties(options).items() if is_of_registry(name)}
    serializer = {name: given.pop(name) for name in SERIALIZER_PROPERTIES & given.keys()}
    # Trust stores of Java's clients have the names of Kafka's behind the prefix.
    settings = for_librdkafka({name.removeprefix(PREFIX): value for name, value in given.items()})
    settings["url"] = options.registry or given.get(URL_PROPERTY) or registry_url(options) or ""
    settings.setdefault("timeout", f"{options.timeout:g}")
    if "basic.auth.credentials.source" in settings:
        kafka = client_settings(options)
        settings = {name: kafka[name] for name in INHERITED if name in kafka} | settings
    try:
        return Registry(RegistryClient(Settings.of(settings)), Writing.of(serializer))
    except ValueError as wrong:
        raise UsageError(f"--registry: {wrong}") from None


@contextmanager
def told() -> Iterator[None]:
    """What the registry refuses, or that it does not answer, ends the tool with one line."""
    try:
        yield
    except RegistryError as refused:
        raise CommandFailed(" ".join(str(refused).split())) from None
