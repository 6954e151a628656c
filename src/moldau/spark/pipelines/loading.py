"""From a pipeline's file to its plan."""

from __future__ import annotations

import runpy
import traceback
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from moldau.spark.pipelines.building import Pipeline
from moldau.spark.pipelines.language.grammar import parse
from moldau.spark.pipelines.plan import Connector, Endpoint, Location, PipelineError, Plan, Sink, Source
from moldau.spark.pipelines.xml_values import with_rules
from moldau.spark.secrets import missing_variables, with_variables

SQLITE = "sqlite:///"
Where = TypeVar("Where", Source, Sink)


def load(path: Path, settings: Mapping[str, str] | None = None) -> Plan:
    """`settings` go before the file's own. Raises PipelineError for whatever is wrong, unreadable files included."""
    if path.suffix == ".sql":
        plan = _load_sql(path)
    elif path.suffix == ".py":
        plan = _load_python(path)
    else:
        raise PipelineError(Location(path.name, 1), "a pipeline's file ends in .sql or .py")
    said = {**plan.settings, **(settings or {})}
    plan = replace(plan, name=said.get("name", plan.name), settings=said)
    return with_rules(_beside(plan, path.resolve().parent))


def files_of(path: Path) -> list[Path]:
    """The pipeline's file and those that it includes."""
    found = [path]

    def note(named: Path, _place: Location) -> Plan:
        found.append(path.parent / named)
        return Plan(path.stem)

    if path.suffix == ".sql":
        parse(path.read_text("utf-8"), path.name, name=path.stem, include=note)
    return found


def variables_of(plan: Plan) -> list[str]:
    """The names that `${env:NAME}` refers to in settings and options."""
    options = [one.endpoint.options for one in plan.sources] + [one.endpoint.options for one in plan.sinks]
    values = [value for said in (plan.settings, *options) for value in said.values()]
    return sorted({name for value in values for name in missing_variables(value, {})})


def with_environment(plan: Plan, environment: Mapping[str, str], *, needs_all: bool = True) -> Plan:
    """`${env:NAME}` in settings and options replaced: that is how passwords stay out of files.

    A look at a pipeline may go without some of them, and leaves them as they are.
    """

    def found(values: Mapping[str, str], place: Location) -> dict[str, str]:
        missing = {key: missing_variables(value, environment) for key, value in values.items()}
        for key, names in missing.items() if needs_all else ():
            for name in names:
                raise PipelineError(place, f"{key} refers to the variable {name}, which the environment does not have")
        return {key: value if missing[key] else with_variables(value, environment) for key, value in values.items()}

    def known(one: Where) -> Where:
        return replace(one, endpoint=replace(one.endpoint, options=found(one.endpoint.options, one.place)))

    return replace(
        plan,
        settings=found(plan.settings, plan.place),
        sources=tuple(map(known, plan.sources)),
        sinks=tuple(map(known, plan.sinks)),
    )


def _beside(plan: Plan, folder: Path) -> Plan:
    """Relative paths count from the folder of the pipeline's file, wherever one stands when it is run."""

    def found(endpoint: Endpoint) -> Endpoint:
        options = {
            key: f"{SQLITE}{folder / value.removeprefix(SQLITE)}" if value.startswith(SQLITE) else value
            for key, value in endpoint.options.items()
        }
        if "warehouse" in options and "://" not in options["warehouse"]:
            options["warehouse"] = str(folder / options["warehouse"])
        is_path = endpoint.connector in (Connector.DELTA, Connector.FILES) and "://" not in endpoint.location
        return replace(
            endpoint, options=options, location=str(folder / endpoint.location) if is_path else endpoint.location
        )

    return replace(
        plan,
        sources=tuple(replace(one, endpoint=found(one.endpoint)) for one in plan.sources),
        sinks=tuple(replace(one, endpoint=found(one.endpoint)) for one in plan.sinks),
    )


def _load_sql(path: Path) -> Plan:
    try:
        source = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as wrong:
        raise PipelineError(Location(path.name, 1), f"can't be read: {wrong}") from None

    def include(named: Path, place: Location) -> Plan:
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
        raise PipelineError(Location(path.name, 1), f"can't be read: {wrong.strerror or wrong}") from None
    except Exception as wrong:
        raise PipelineError(Location(path.name, _line_of(wrong, path)), f"{type(wrong).__name__}: {wrong}") from None
    found = [value for value in said.values() if isinstance(value, Pipeline)]
    if len(found) != 1:
        raise PipelineError(Location(path.name, 1), f"one Pipeline was expected at the top level, found {len(found)}")
    return found[0].plan


def _line_of(wrong: Exception, path: Path) -> int:
    """The last line of the file itself that led to the mistake."""
    if isinstance(wrong, SyntaxError):
        return wrong.lineno or 1
    lines = [frame.lineno or 1 for frame in traceback.extract_tb(wrong.__traceback__) if Path(frame.filename) == path]
    return lines[-1] if lines else 1
