"""A client of any registry that speaks Confluent's API, for tools, the REST proxy and Spark's workers."""

from moldau.schemas.registry_client.answers import Compatibility, SchemaText, StoredSchema
from moldau.schemas.registry_client.client import RegistryClient
from moldau.schemas.registry_client.errors import RegistryError, RegistryUnreachable
from moldau.schemas.registry_client.settings import Settings

__all__ = [
    "Compatibility",
    "RegistryClient",
    "RegistryError",
    "RegistryUnreachable",
    "SchemaText",
    "Settings",
    "StoredSchema",
]
