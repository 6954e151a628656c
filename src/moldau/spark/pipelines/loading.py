"""From a pipeline's file to its plan."""

from __future__ import annotations

import runpy
import traceback
from pathlib import Path

from moldau.spark.pipelines.building import Pipeline
from moldau.spark.pipelines.grammar import parse
from moldau.spark.pipelines.plan import PipelineError, Place, Plan


def load(path: Path) -> Plan:
    """Raises PipelineError for whatever is wrong with the file, unreadable ones included."""
    if path.suffix == ".sql":
        return _load_sql(path)
    if path.suffix == ".py":
        return _load_python(path)
    raise PipelineError(Place(path.name, 1), "a pipeline's file ends in .sql or .py")


def _load_sql(path: Path) -> Plan:
    try:
        source = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as wrong:
        raise PipelineError(Place(path.name, 1), f"can't be read: {wrong}") from None

    def include(named: Path, place: Place) -> Plan:
        found = path.parent / named
        if found.suffix != ".py":
            raise PipelineError(place, f"INCLUDE takes a .py file, not {named}")
        return _load_python(found)

    return parse(source, path.name, name=path.stem, include=include)


def _load_python(path: Path) -> Plan:
    try:
        said = runpy.run_path(str(path), run_name="pipeline")
    except PipelineError:
        raise
    except OSError as wrong:
        raise PipelineError(Place(path.name, 1), f"can't be read: {wrong.strerror or wrong}") from None
    except Exception as wrong:
        raise PipelineError(Place(path.name, _line_of(wrong, path)), f"{type(wrong).__name__}: {wrong}") from None
    found = [value for value in said.values() if isinstance(value, Pipeline)]
    if len(found) != 1:
        raise PipelineError(Place(path.name, 1), f"one Pipeline was expected at the top level, found {len(found)}")
    return found[0].plan


def _line_of(wrong: Exception, path: Path) -> int:
    """The last line of the file itself that led to the mistake."""
    if isinstance(wrong, SyntaxError):
        return wrong.lineno or 1
    lines = [frame.lineno or 1 for frame in traceback.extract_tb(wrong.__traceback__) if Path(frame.filename) == path]
    return lines[-1] if lines else 1
