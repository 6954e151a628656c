"""Style as a test: sizes, names and where code may stand. What breaks a rule is listed, and the list only shrinks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "moldau"
MODULES = {path.relative_to(SOURCE).as_posix(): path for path in sorted(SOURCE.rglob("*.py"))}

LINES_MAX = 400
FUNCTION_LINES_MAX = 50
# The measured size of what is too long; a figure may only go down, and a clean file leaves the list.
SINNERS: dict[str, int] = {}
LONG_FUNCTIONS: dict[str, int] = {}

FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}
# The package itself offers `run` by name without importing what a broker's start does not need.
LAZY_PACKAGES = {"__init__.py"}
# Where the machine's clock may be read: everything else takes the time as an argument.
CLOCK_READERS = {"core/clock.py"}
CLOCK_CALLS = {"time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "datetime.today"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def parsed(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text(), filename=name)


def functions(tree: ast.Module) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def is_docstring_or_import(node: ast.stmt) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]


@pytest.mark.parametrize("name", MODULES)
def test_modules_stay_small(name: str) -> None:
    lines = len(MODULES[name].read_text().splitlines())
    assert lines <= SINNERS.get(name, LINES_MAX), f"{name} has {lines} lines; split it"
    assert name not in SINNERS or lines > LINES_MAX, f"{name} is clean now; remove it from SINNERS"


@pytest.mark.parametrize("name", MODULES)
def test_functions_stay_small(name: str) -> None:
    for function in functions(parsed(name)):
        assert function.end_lineno is not None
        lines, key = function.end_lineno - function.lineno + 1, f"{name}:{function.name}"
        assert lines <= LONG_FUNCTIONS.get(key, FUNCTION_LINES_MAX), f"{key} has {lines} lines; split it"


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_named_for_what_they_hold(name: str) -> None:
    words = {word for part in Path(name).with_suffix("").parts for word in part.split("_")}
    assert not words & FORBIDDEN_NAMES, f"{name}: name it for what is in it"


@pytest.mark.parametrize("name", MODULES)
def test_classes_are_not_managers(name: str) -> None:
    classes = [node.name for node in ast.walk(parsed(name)) if isinstance(node, ast.ClassDef)]
    assert not [found for found in classes if found.endswith(("Manager", "Helper", "Util", "Utils"))]


@pytest.mark.parametrize("name", [name for name in MODULES if Path(name).name == "__init__.py"])
def test_a_package_only_re_exports(name: str) -> None:
    if name in LAZY_PACKAGES:
        return
    code = [ast.unparse(node) for node in parsed(name).body if not is_docstring_or_import(node)]
    if name == "broker/handlers/__init__.py":  # the table of handlers is the one list that a package may hold
        code = [line for line in code if not line.startswith("TABLE")]
    assert not code, f"{name} holds code; give it a module of its own"


@pytest.mark.parametrize("name", MODULES)
def test_a_module_says_what_it_is_for(name: str) -> None:
    tree = parsed(name)
    assert not tree.body or ast.get_docstring(tree), f"{name} begins with no sentence on what it is for"


@pytest.mark.parametrize("name", [name for name in MODULES if name not in CLOCK_READERS])
def test_time_comes_in_as_an_argument(name: str) -> None:
    calls = {ast.unparse(node.func) for node in ast.walk(parsed(name)) if isinstance(node, ast.Call)}
    assert not calls & CLOCK_CALLS, f"{name} reads the clock; take now_ms as an argument"


def test_no_module_asks_for_a_later_day() -> None:
    marks = ("TODO", "FIXME", "XXX", "NotImplementedError")
    found = [f"{name}: {mark}" for name, path in MODULES.items() for mark in marks if mark in path.read_text()]
    assert not found, "what is not there gets an explicit error and a line in docs/compatibility.md"
