"""The text of a schema as Confluent's registry prints it, so that clients find there what they registered here.

A canonical text keeps names of types, order and options as they were written; white space and comments are gone. A
normalized one has full names, the order of numbers and options as the compiler understood them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorProto, MethodDescriptorProto, ServiceDescriptorProto

from moldau.schemas.protobuf import declarations
from moldau.schemas.protobuf.options import Option, compact, indented, quoted
from moldau.schemas.protobuf.source import Path, Source
from moldau.schemas.protobuf.style import Style, option_statements

# Numbers of fields in descriptor.proto, of which the compiler's paths are made.
MESSAGES, ENUMS, SERVICES, EXTENSIONS, OPTIONS, SYNTAX, EDITION = 4, 5, 6, 7, 8, 12, 14
METHOD, SERVICE_OPTIONS = 2, 3
INPUT, OUTPUT, METHOD_OPTIONS = 2, 3, 4


def print_written(file: FileDescriptorProto, text: str) -> str:
    return _file(file, Style(Source(file, text), in_order=False, syntax=file.syntax))


def print_changed(file: FileDescriptorProto, source: Source, changed: Mapping[Path, Sequence[Option]]) -> str:
    """As it was written, with other options of some messages and fields."""
    return _file(file, Style(source, in_order=False, syntax=file.syntax, changed=changed))


def print_normalized(file: FileDescriptorProto, pool: Any) -> str:
    return _file(_with_extensions(file, pool), Style(None, in_order=True, syntax=file.syntax))


def print_descriptor(file: FileDescriptorProto, pool: Any) -> str:
    """The text of a descriptor that has none, in its own order."""
    return _file(_with_extensions(file, pool), Style(None, in_order=False, syntax=file.syntax))


def _with_extensions(file: FileDescriptorProto, pool: Any) -> Any:
    """The file in a class that knows the extensions of options which the pool has."""
    try:
        descriptor = pool.FindMessageTypeByName(descriptor_pb2.FileDescriptorProto.DESCRIPTOR.full_name)
    except KeyError:
        return file  # nothing imports descriptor.proto, so no option is an extension
    return message_factory.GetMessageClass(descriptor).FromString(file.SerializeToString())


def _file(file: Any, style: Style) -> str:
    return "".join((*_heading(file, style), *(f"\n{section}" for section in _sections(file, style) if section)))


def _heading(file: Any, style: Style) -> Iterator[str]:
    if file.syntax == "editions":
        edition = descriptor_pb2.Edition.Name(file.edition).removeprefix("EDITION_")
        yield f'edition = "{edition}";\n'
    elif file.syntax or (style.source and style.source.has((SYNTAX,))):
        yield f'syntax = "{file.syntax or "proto2"}";\n'
    if file.package:
        yield f"package {file.package};\n"


def _sections(file: Any, style: Style) -> Iterator[str]:
    yield _imports(file, style)
    yield option_statements(file.options, style, (OPTIONS,))
    scope = f".{file.package}" if file.package else ""
    groups = _groups(file, scope)
    types = [
        declarations.message(message, style, (MESSAGES, index), scope)
        for index, message in enumerate(file.message_type)
        if index not in groups.values()
    ]
    types += [declarations.enum(enum, style, (ENUMS, index)) for index, enum in enumerate(file.enum_type)]
    yield "".join(types)
    bodies = tuple(_group(file, extension, style, groups) for extension in file.extension)
    yield "".join(declarations.extends(file.extension, style, (EXTENSIONS,), bodies))
    yield "".join(_service(service, style, (SERVICES, index)) for index, service in enumerate(file.service))


def _groups(file: Any, scope: str) -> dict[str, int]:
    """Messages that are the bodies of groups among the file's extensions."""
    names = {f"{scope}.{message.name}": index for index, message in enumerate(file.message_type)}
    groups = {extension.type_name for extension in file.extension if extension.type == extension.TYPE_GROUP}
    return {name: names[name] for name in groups if name in names}


def _group(file: Any, extension: Any, style: Style, groups: dict[str, int]) -> str:
    if extension.type != extension.TYPE_GROUP or extension.type_name not in groups:
        return ""
    index = groups.pop(extension.type_name)
    return declarations.body(file.message_type[index], style, (MESSAGES, index), extension.type_name)


def _imports(file: Any, style: Style) -> str:
    public, weak = set(file.public_dependency), set(file.weak_dependency)
    plain = [name for index, name in enumerate(file.dependency) if index not in public]
    shared = [file.dependency[index] for index in file.public_dependency]
    weakly = {file.dependency[index] for index in weak}
    if style.in_order:
        plain, shared = sorted(plain), sorted(shared)
    lines = [f"import {'weak ' if name in weakly else ''}{quoted(name.encode())};\n" for name in plain]
    lines += [f"import public {quoted(name.encode())};\n" for name in shared]
    # Imports for options alone came with edition 2024; a runtime before it has no such field.
    lines += [f"import option {quoted(name.encode())};\n" for name in getattr(file, "option_dependency", ())]
    return "".join(lines)


def _service(service: ServiceDescriptorProto, style: Style, path: Path) -> str:
    sections = (
        option_statements(service.options, style, (*path, SERVICE_OPTIONS)),
        "".join(_method(method, style, (*path, METHOD, index)) for index, method in enumerate(service.method)),
    )
    body = "".join(f"\n{indented(section)}" for section in sections if section)
    return f"service {service.name} {{{body}}}\n"


def _method(method: MethodDescriptorProto, style: Style, path: Path) -> str:
    asked, answered = (
        compact(style.written(*path, number) or name)
        for number, name in ((INPUT, method.input_type), (OUTPUT, method.output_type))
    )
    asks = "stream " if method.client_streaming else ""
    answers = "stream " if method.server_streaming else ""
    statements = option_statements(method.options, style, (*path, METHOD_OPTIONS))
    block = f" {{\n{indented(statements)}}}" if statements else ""
    return f"rpc {method.name} ({asks}{asked}) returns ({answers}{answered}){block};\n"
