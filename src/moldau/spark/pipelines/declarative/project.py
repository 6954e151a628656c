"""A project of Spark's Declarative Pipelines: the folder of a `spark-pipeline.yml`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moldau.spark.pipelines.plan import Location, PipelineError
from moldau.spark.pipelines.running.reasons import said_by

if TYPE_CHECKING:
    from pyspark.pipelines.cli import PipelineSpec

Versions = frozenset[tuple[str, int, int]]  # files by their paths, with the time of their last change and their size

SPEC_NAMES = ("spark-pipeline.yml", "spark-pipeline.yaml")
SUFFIXES = (".yml", ".yaml")
HOME = Path(".moldau", "pipelines")
NO_YAML = "Spark's Declarative Pipelines need PyYAML: run pip install 'moldau[pipelines]'"


@dataclass(frozen=True, slots=True)
class Project:
    name: str
    spec_file: Path  # absolute
    settings: Mapping[str, str] = field(default_factory=dict)  # they go before the file's `configuration`
    configuration: Mapping[str, str] = field(default_factory=dict)  # of both, as it was when the file was loaded
    storage: str | None = None  # Spark refuses a specification without it

    @property
    def folder(self) -> Path:
        return self.spec_file.parent

    @property
    def home(self) -> Path:
        """What moldau keeps of it on this machine."""
        return self.folder / HOME / self.name


def is_project(path: Path) -> bool:
    return path.is_dir() or path.suffix in SUFFIXES


def spec_file_of(path: Path) -> Path:
    """The file itself, or the one of a folder."""
    if not path.is_dir():
        return path
    found = [path / name for name in SPEC_NAMES if (path / name).is_file()]
    if len(found) != 1:
        problem = "has both of" if found else "has none of"
        raise PipelineError(Location(str(path), 1), f"the folder {problem} {' and '.join(SPEC_NAMES)}")
    return found[0]


def load_project(path: Path, settings: Mapping[str, str] | None = None) -> Project:
    """What is told without Spark; `spec_of` has Spark read the rest. Raises PipelineError."""
    spec_file = spec_file_of(path).resolve()
    said = _read(spec_file)
    name = said.get("name")
    if not isinstance(name, str) or not name or "/" in name:
        raise PipelineError(Location(spec_file.name, 1), f"name: {name!r} is no name for a pipeline")
    settings, storage = dict(settings or {}), said.get("storage")
    configuration = {str(key): str(value) for key, value in _configuration(said).items()} | settings
    return Project(name, spec_file, settings, configuration, storage if isinstance(storage, str) and storage else None)


def spec_of(project: Project) -> PipelineSpec:
    """As Spark itself reads and judges it, with the settings of the command line."""
    from pyspark.errors import PySparkException
    from pyspark.pipelines.cli import unpack_pipeline_spec

    said = dict(_read(project.spec_file))
    configuration = said.get("configuration") or {}
    if isinstance(configuration, Mapping):
        said["configuration"] = {**configuration, **project.settings}
    try:
        return unpack_pipeline_spec(said)
    except PySparkException as wrong:
        raise PipelineError(Location(project.spec_file.name, 1), said_by(wrong)) from None
    except (TypeError, KeyError, AttributeError):
        reason = "libraries: expected a list of entries such as `- glob: {include: transformations/**}`"
        raise PipelineError(Location(project.spec_file.name, 1), reason) from None


def versions_of(project: Project) -> Versions:
    """Of the specification and of what it includes, to tell whether somebody has changed any of it."""
    found = [project.spec_file]
    with suppress(PipelineError, ValueError, RuntimeError):  # Spark tells what is wrong with a pattern
        for library in spec_of(project).libraries:
            found += [path for path in project.folder.glob(library.include) if _is_definition(path)]
    versions = []
    for path in found:
        with suppress(OSError):
            seen = path.stat()
            versions.append((str(path), seen.st_mtime_ns, seen.st_size))
    return frozenset(versions)


def _configuration(said: Mapping[str, Any]) -> Mapping[str, Any]:
    configuration = said.get("configuration")
    return configuration if isinstance(configuration, Mapping) else {}


def _is_definition(path: Path) -> bool:
    """As Spark has it: Python itself leaves files there."""
    return path.is_file() and "__pycache__" not in path.parts


def _read(spec_file: Path) -> Mapping[str, Any]:
    import yaml

    try:
        said = yaml.safe_load(spec_file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as wrong:
        raise PipelineError(Location(spec_file.name, 1), f"can't be read: {wrong}") from None
    except yaml.YAMLError as wrong:
        mark = getattr(wrong, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        problem = getattr(wrong, "problem", None) or "it can't be parsed"
        raise PipelineError(Location(spec_file.name, line), f"no YAML: {problem}") from None
    if not isinstance(said, Mapping):
        raise PipelineError(Location(spec_file.name, 1), "name, storage and libraries were expected")
    return said
