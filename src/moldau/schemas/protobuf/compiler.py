"""Protobuf's own compiler, one process for each text: whatever it makes of a hostile one, it ends with it.

It takes two milliseconds. No path of the machine can be imported: only the texts and the well-known types are mapped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from moldau.schemas.model import InvalidSchema

TEXT_BYTES_MAX = 1 << 20  # a record of a registry's topic is no larger by default
TEXTS_BYTES_MAX = 8 << 20  # with all that it refers to
REFERENCES_MAX = 1000
COMPILED_BYTES_MAX = 64 << 20  # full names repeat the package: a small text can be a large descriptor
MEMORY_BYTES_MAX = 1 << 30
SECONDS_MAX = 20.0
PROBLEMS_MAX = 5
COMPLAINTS_BYTES_MAX = 64 << 10
NAME_CHARACTERS_MAX = 1000

WELL_KNOWN = (
    "any",
    "source_context",
    "type",
    "api",
    "duration",
    "empty",
    "field_mask",
    "struct",
    "timestamp",
    "wrappers",
)
WELL_KNOWN_FOLDERS = ("google/protobuf/", "google/type/", "confluent/")
MISSING = (
    "Protobuf schemas need the compiler protoc; install it with: pip install 'moldau[registry]', "
    "or have a protoc of your own on the PATH"
)


def compile_files(name: str, texts: Mapping[str, str]) -> FileDescriptorSet:
    """The file `name` of `texts`, after all that it imports. Raises InvalidSchema."""
    _check(texts)
    with tempfile.TemporaryDirectory(prefix="moldau-protoc-") as folder:
        mapped = {file: os.path.join(folder, str(number)) for number, file in enumerate(texts)}
        for file, path in mapped.items():
            Path(path).write_bytes(texts[file].encode())
        compiled = Path(folder, "compiled")
        arguments = [f"-I{file}={path}" for file, path in mapped.items()]
        arguments += [f"-I{place}" for place in _folders() if not _shadows(place, texts)]
        arguments += ["--descriptor_set_in=/dev/stdin", f"--descriptor_set_out={compiled}"]
        problems = _run([*arguments, "--include_imports", "--include_source_info", name], Path(folder, "complaints"))
        if problems is not None:
            raise InvalidSchema(_told(problems, mapped))
        if compiled.stat().st_size > COMPILED_BYTES_MAX:
            raise InvalidSchema(f"its descriptors take more than {COMPILED_BYTES_MAX} bytes")
        return FileDescriptorSet.FromString(compiled.read_bytes())


def _check(texts: Mapping[str, str]) -> None:
    if len(texts) > REFERENCES_MAX + 1:
        raise InvalidSchema(f"{len(texts) - 1} references; allowed are {REFERENCES_MAX}")
    for file, text in texts.items():
        if not 0 < len(file) <= NAME_CHARACTERS_MAX or not file.isprintable() or set(file) & set("=:;\\"):
            raise InvalidSchema(f"{file[:100]!r} can't be the name of a reference to a Protobuf schema")
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            raise InvalidSchema("the schema is no UTF-8: it has half of a surrogate pair") from None
        if size > TEXT_BYTES_MAX:
            raise InvalidSchema(f"the schema has more than {TEXT_BYTES_MAX} bytes")
    if sum(len(text) for text in texts.values()) > TEXTS_BYTES_MAX:
        raise InvalidSchema(f"the schema and its references have more than {TEXTS_BYTES_MAX} bytes")


def _run(arguments: Sequence[str], complaints: Path) -> str | None:
    """What the compiler complains of, or None."""
    with complaints.open("wb") as told:
        # It prints nothing there: the pipe tells its end at once, where a wait with a deadline would look now and then.
        process = subprocess.Popen(
            [find_protoc(), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=told
        )
    _limit(process.pid)
    try:
        process.communicate(well_known_types(), timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise InvalidSchema(f"the compiler was not done with it after {SECONDS_MAX:.0f} s") from None
    if process.returncode < 0:
        raise InvalidSchema("the compiler needs too much memory or space for it")
    return _both_ends(complaints) if process.returncode else None


def _both_ends(complaints: Path) -> str:
    """A text can have a warning for every second byte, before the error."""
    with complaints.open("rb") as told:
        start = told.read(COMPLAINTS_BYTES_MAX)
        told.seek(max(told.tell(), complaints.stat().st_size - COMPLAINTS_BYTES_MAX))
        return (start + told.read()).decode(errors="replace")


def _limit(process: int) -> None:
    if sys.platform != "linux":
        return
    import resource

    try:
        resource.prlimit(process, resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
        resource.prlimit(process, resource.RLIMIT_FSIZE, (COMPILED_BYTES_MAX + 1, COMPILED_BYTES_MAX + 1))
        resource.prlimit(process, resource.RLIMIT_CORE, (0, 0))
    except (ProcessLookupError, PermissionError):
        pass  # it is done already, or the machine forbids it: time and size are limited anyway


def _told(complaints: str, mapped: Mapping[str, str]) -> str:
    """The compiler's words with the names that users know; the schema itself is just line and column."""
    lines = complaints.splitlines()
    for number, (file, path) in enumerate(mapped.items()):
        lines = [line.replace(f"{path}:", f"{file}:" if number else "line ", 1) for line in lines]
    told = [line for line in dict.fromkeys(lines) if ": warning: " not in line]
    more = [f"and {len(told) - PROBLEMS_MAX} more"] if len(told) > PROBLEMS_MAX else []
    return "; ".join([line[:300] for line in told[:PROBLEMS_MAX]] + more) or "the compiler gives no reason"


@lru_cache(maxsize=1)
def find_protoc() -> str:
    """Beside the interpreter, where pip puts it, else on the PATH."""
    scripts = sysconfig.get_path("scripts")
    found = shutil.which("protoc", path=scripts) or shutil.which("protoc")
    if found is None:
        raise InvalidSchema(MISSING)
    return found


@lru_cache(maxsize=1)
def well_known_types() -> bytes:
    """google/protobuf/*.proto as the runtime has them, which is also what reads them."""
    from importlib import import_module

    known = FileDescriptorSet()
    known.file.add().MergeFromString(descriptor_pb2.DESCRIPTOR.serialized_pb)
    for name in WELL_KNOWN:
        module = import_module(f"google.protobuf.{name}_pb2")
        known.file.add().MergeFromString(module.DESCRIPTOR.serialized_pb)
    return bytes(known.SerializeToString())


@lru_cache(maxsize=1)
def _folders() -> tuple[str, ...]:
    """Mappings of folders with types that everybody knows."""
    found = [f"confluent={Path(__file__).parent / 'confluent'}"]
    spec = find_spec("google.type")
    if spec is not None and spec.submodule_search_locations:
        found += [f"google/type={folder}" for folder in spec.submodule_search_locations]
    return tuple(found)


def _shadows(place: str, texts: Mapping[str, str]) -> bool:
    """protoc refuses a file that one mapping hides behind another one; a schema's own reference is what counts."""
    folder = place.partition("=")[0] + "/"
    return any(file.startswith(folder) for file in texts)
