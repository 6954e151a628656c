"""Settings of Confluent's serializers that are not supported: a setting is honoured or refused, never dropped."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.spark.option_values import OptionError
from moldau.spark.registry_names import FAILS_INVALID, found

NO_RULES = "rules of data contracts are not run"
REFUSED = {
    "context.name.strategy": "give the context in the subject, as in valueSubject = ':.context:orders-value'",
    "enable.rule.service.loader": NO_RULES,
    "id.compatibility.strict": "columns that do not fit the schema of use.schema.id are always refused",
    "latest.cache.size": "the latest schema is asked for anew each time",
    "latest.cache.ttl.sec": "the latest schema is asked for anew each time",
    "propagate.schema.tags": "tags of columns are not kept",
    "reference.subject.name.strategy": "register the schemas that are referred to first, and set use.latest.version",
    "rule.actions": NO_RULES,
    "rule.executors": NO_RULES,
    "rule.service.loader.enable": NO_RULES,
    "schema.id.deserializer": "reading finds ids in headers and in front of payloads by itself",
    "use.latest.with.metadata": "set valueSchemaVersion or use.schema.id",
}


def refuse_unsupported(options: Mapping[str, str]) -> None:
    """Of either end. Raises OptionError."""
    for name in options:
        bare = name.lower().removeprefix("key.").removeprefix("value.")
        for refused, reason in REFUSED.items():
            if bare == refused or bare.startswith(f"{refused}."):  # as in rule.executors.NAME.class
                raise OptionError(f"option {name} is not supported: {reason}")


def refuse_on_reading(options: Mapping[str, str]) -> None:
    """What is true of writing only. Raises OptionError."""
    if found(options, FAILS_INVALID).lower() == "true":
        raise OptionError(
            f"option {FAILS_INVALID} = true is not supported on reading: rules about values are not checked"
        )
