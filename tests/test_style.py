"""Style as a test: sizes, names and where code may stand. What breaks a rule is listed, and the list only shrinks."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).parents[1]
SOURCE = PROJECT / "src" / "moldau"
MODULES = {path.relative_to(SOURCE).as_posix(): path for path in sorted(SOURCE.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text(), filename=name) for name, path in MODULES.items()}

LINES_MAX = 400
FUNCTION_LINES_MAX = 50
# The measured size of what is too long; a figure may only go down, and a clean file leaves the list.
SINNERS: dict[str, int] = {}

FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}
# They offer names without importing what they lead to: a broker's start and a tool's load no more than they need.
LAZY_PACKAGES = {"__init__.py", "wire/messages/__init__.py"}
# Where the machine's clock may be read: everything else takes the time as an argument.
CLOCK_READERS = {"core/clock.py"}
CLOCK_CALLS = {"time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "datetime.today"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.Module) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def is_docstring_or_import(node: ast.stmt) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]


def test_modules_stay_small() -> None:
    lines = {name: len(path.read_text().splitlines()) for name, path in MODULES.items()}
    too_long = {name: size for name, size in lines.items() if size > SINNERS.get(name, LINES_MAX)}
    assert not too_long, "split them"
    assert not [name for name in SINNERS if lines.get(name, 0) <= LINES_MAX], "clean now; remove them from SINNERS"


def test_functions_stay_small() -> None:
    lines = {
        f"{name}:{function.name}": (function.end_lineno or function.lineno) - function.lineno + 1
        for name, tree in TREES.items()
        for function in functions(tree)
    }
    assert not {key: size for key, size in lines.items() if size > FUNCTION_LINES_MAX}, "split them"


def test_modules_are_named_for_what_they_hold() -> None:
    words = {name: {word for part in Path(name).with_suffix("").parts for word in part.split("_")} for name in MODULES}
    assert not [name for name in MODULES if words[name] & FORBIDDEN_NAMES]


def test_classes_are_not_managers() -> None:
    classes = [node.name for tree in TREES.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    assert not [name for name in classes if name.endswith(("Manager", "Helper", "Util", "Utils"))]


def test_a_package_only_re_exports() -> None:
    packages = [name for name in MODULES if Path(name).name == "__init__.py" and name not in LAZY_PACKAGES]
    code = {name: [node for node in TREES[name].body if not is_docstring_or_import(node)] for name in packages}
    assert not [name for name in packages if code[name]], "give the code a module of its own"


def test_a_module_says_what_it_is_for() -> None:
    assert not [name for name, tree in TREES.items() if tree.body and not ast.get_docstring(tree)]


def test_time_comes_in_as_an_argument() -> None:
    calls = {
        name: {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        for name, tree in TREES.items()
    }
    assert not [name for name in MODULES if name not in CLOCK_READERS and calls[name] & CLOCK_CALLS]


def test_nothing_is_left_for_a_later_day() -> None:
    marks = ("TODO", "FIXME", "XXX", "NotImplementedError")
    found = [f"{name}: {mark}" for name, path in MODULES.items() for mark in marks if mark in path.read_text()]
    assert not found, "what is not there gets an explicit error and a line in docs/compatibility.md"


def test_layers_are_on_the_map_in_the_same_order() -> None:
    """ARCHITECTURE.md's table and the import contract tell the same story."""
    contract = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    layers = [room for layer in contract["layers"] for room in layer.split(" | ") if not room.startswith("(")]
    table = (PROJECT / "ARCHITECTURE.md").read_text().partition("| layer |")[2].partition("\n\n")[0]
    rooms = (
        [room for line in table.splitlines() for room in re.findall(r"`([a-z_]+)`", line.split("|")[1])]
        if table
        else []
    )
    assert rooms == layers
