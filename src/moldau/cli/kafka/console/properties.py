"""Properties of readers and formatters, options under their old names, and settings that only Java's clients have."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from moldau.cli.connection import named, read_properties
from moldau.cli.failures import UsageError

# Settings that say nothing to librdkafka; the tool or the library takes care of what they are about.
JAVA_ONLY = {
    "key.serializer", "value.serializer", "key.deserializer", "value.deserializer", "max.block.ms", "max.poll.records",
    "default.api.timeout.ms", "interceptor.classes", "metric.reporters", "partitioner.class", "exclude.internal.topics",
    "partition.assignment.strategy", "fetch.max.wait.ms", "buffer.memory", "send.buffer.bytes", "receive.buffer.bytes",
    "partitioner.ignore.keys", "partitioner.adaptive.partitioning.enable",
}  # fmt: skip


def tool_properties(file: str | None, pairs: Sequence[str], *, option: str) -> dict[str, str]:
    """Of a file and of the command line, which wins. A value keeps its spaces: it may be a separator."""
    found = read_properties(file) if file else {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"{option}: expected KEY=VALUE, not {named(pair)}")
        found[key] = value
    return found


def is_true(properties: Mapping[str, str], key: str, *, usual: bool = False) -> bool:
    return properties[key].strip().lower() == "true" if key in properties else usual


def warn_of_old_names(arguments: Sequence[str], names: Mapping[str, str]) -> None:
    given = {word.partition("=")[0] for word in arguments}
    for old, new in names.items():
        if old in given:
            print(
                f"Option {old} is deprecated and will be removed in a future version. Use {new} instead.",
                file=sys.stderr,
            )


def without_java_only(settings: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in settings.items() if key not in JAVA_ONLY}
