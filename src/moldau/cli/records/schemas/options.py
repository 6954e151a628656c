"""The options of `moldau consume` and `moldau produce` that are about schemas; nothing of a registry is imported."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from argparse import _ArgumentGroup as ArgumentGroup

from moldau.cli.completion.kinds import Completes, Kind
from moldau.cli.connection import given_properties
from moldau.cli.failures import UsageError
from moldau.cli.parsing import Parser
from moldau.cli.profiles import REGISTRY, of_process

KEY, VALUE, BOTH, NONE = "key", "value", "both", "none"
URL_PROPERTY = "schema.registry.url"
SCHEMA = Completes("SCHEMA", Kind.FILES)
STRATEGIES = ("topic", "record", "topic_record")
TYPES = ("avro", "json", "protobuf")

READING_HELP = """\
schemas: with --registry, a key or value that names a schema, before its bytes or in a header, is shown as JSON, and
  --grep and formats see that JSON. With -o json it is the JSON value itself, and key_schema or value_schema beside it
  names the schema: {"id": 7, "type": "AVRO"}. Where that is null the content is a string or {"base64": "..."}, as
  without a registry. `moldau produce -i json --registry URL` reads both back.
"""
WRITING_HELP = """\
schemas: --key-schema and --value-schema are a file (.avsc, .json or .proto; it is registered), `latest` (of the topic's
  subject), `id:7`, or a subject and a version of it, such as `orders-value:3`. A line, or the part before or behind
  --key-separator, is then JSON in the form that `moldau consume --registry` shows; null stands for no key or value.
  Without them json input is written by the schemas that its lines name, as key_schema or value_schema.
"""


def add_reading_options(parser: Parser) -> None:
    group = parser.add_argument_group("schemas: see below")
    _add_registry(group)
    group.add_argument(
        "--registry-for",
        choices=(KEY, VALUE, BOTH, NONE),
        help="what is read by the registry (default: both, where a schema is named)",
    )
    group.add_argument(
        "--strict", action="store_true", help="end with exit code 1 at the first that can't be read by it"
    )


def add_writing_options(parser: Parser) -> None:
    group = parser.add_argument_group("schemas: see below")
    _add_registry(group)
    group.add_argument("--value-schema", metavar=SCHEMA, help="by which values are written")
    group.add_argument("--key-schema", metavar=SCHEMA, help="by which keys are written")
    group.add_argument("--schema-type", choices=TYPES, help="of the files (default: by their ending)")
    group.add_argument(
        "--schema-reference",
        metavar="NAME=SUBJECT:VERSION",
        type=reference,
        action="append",
        default=[],
        help="what the file refers to; may be repeated. Of the value's file, or of the key's if it is the only one",
    )
    group.add_argument("--message", metavar="NAME", help="of a Protobuf value (default: the first of its schema)")
    group.add_argument("--key-message", metavar="NAME", help="the same of a key")
    group.add_argument(
        "--subject-strategy",
        choices=STRATEGIES,
        help="how the subject of values is named (default: topic, which is TOPIC-value)",
    )
    group.add_argument("--no-register", action="store_true", help="a file's schema has to be registered already")
    group.add_argument(
        "--header-ids", action="store_true", help="name schemas by GUIDs in headers, not before the bytes"
    )


def _add_registry(group: ArgumentGroup) -> None:
    group.add_argument(
        "--registry",
        metavar="URL",
        help=f"of a schema registry (default: {URL_PROPERTY} of --command-config, MOLDAU_REGISTRY, the profile);"
        " logins and certificates by Confluent's names (basic.auth.user.info) in --command-config or a profile",
    )


def reference(text: str) -> tuple[str, str, int]:
    name, equals, rest = text.partition("=")
    subject, colon, version = rest.rpartition(":")
    if not (name and equals and subject and colon and version.isdecimal()):
        raise ArgumentTypeError(f"{text!r} is no reference; expected NAME=SUBJECT:VERSION")
    return name, subject, int(version)


def registry_url(options: Namespace) -> str | None:
    """None if no registry is given anywhere."""
    found: str | None = options.registry or given_properties(options).get(URL_PROPERTY)
    return found or of_process(options.profile).value(REGISTRY)


def check_writing(options: Namespace) -> None:
    """Raises UsageError for options that go without what they are about."""
    for part in (KEY, VALUE):
        if getattr(options, f"{part}_schema") == "":
            raise UsageError(f"--{part}-schema: expected a file, latest, id:N or SUBJECT:VERSION")
    needs = {
        "--message": (options.message, options.value_schema),
        "--key-message": (options.key_message, options.key_schema),
        "--schema-type": (options.schema_type, options.value_schema or options.key_schema),
        "--schema-reference": (options.schema_reference, options.value_schema or options.key_schema),
        "--subject-strategy": (options.subject_strategy, options.value_schema),
        "--no-register": (options.no_register, options.value_schema or options.key_schema),
    }
    for option, (given, needed) in needs.items():
        if given and not needed:
            raise UsageError(
                f"{option}: of which schema? Give --{'key' if option == '--key-message' else 'value'}-schema"
            )
    if options.registry is None and (options.value_schema or options.key_schema) and registry_url(options) is None:
        part = VALUE if options.value_schema else KEY
        raise UsageError(
            f"--{part}-schema: of which registry? Give --registry URL, or MOLDAU_REGISTRY; see: moldau registry"
        )
