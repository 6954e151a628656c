"""What a shell asks at each Tab: `moldau complete-line SHELL …`, which prints candidates and never an error.

The first line says how they are to be taken: `files` and `folders` are the shell's own to complete, behind `nospace`
a value goes on. Each other line is a candidate, for zsh and fish with a tab and what it is.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from moldau.cli.completion.bash_line import parsed, written
from moldau.cli.completion.kinds import Kind
from moldau.cli.completion.shapes import Shape, known_shape, shape_of
from moldau.cli.completion.walking import Place, Walk
from moldau.cli.tools import ALIASES, LEADING, TOOLS, module_of, tool_name

CANDIDATES_MAX = 2_000  # nobody reads more, and shells become slow
START, HELP, COMPLETION = "start", "help", "completion"
COMMANDS = {
    START: "run a broker, or several",
    HELP: "the options of a command, with examples",
    **{name: tool.summary for name, tool in TOOLS.items()},
}
SCRIPTS = {
    f"kafka-{name}.sh": TOOLS[ALIASES.get(name, name)].summary
    for name in (*(name for name, tool in TOOLS.items() if tool.kafka), *ALIASES)
}
SOURCE = Path(__file__).parents[2]

Candidate = tuple[str, str]
ParserOf = Callable[[str], ArgumentParser]


class Answer(NamedTuple):
    candidates: Sequence[Candidate]
    taken: str = ""


def main(arguments: Sequence[str], parser_of: ParserOf) -> int:
    try:
        lines = answered(arguments, parser_of)
    except Exception:  # at a prompt nobody wants to hear of it
        return 0
    text = "\n".join(lines) + "\n"
    sys.stdout.buffer.write(text.encode(errors="surrogateescape"))
    sys.stdout.buffer.flush()
    return 0


def answered(arguments: Sequence[str], parser_of: ParserOf) -> list[str]:
    shell, *rest = arguments
    if shell == "bash":
        breaks, text = rest
        line = parsed(text, breaks)
        answer = complete(line.words, parser_of)
        texts = [written(each, line) for each, _ in answer.candidates]
        return [answer.taken, *(each for each in texts if each is not None)]
    if shell == "fish":
        rest[-1] = parsed(rest[-1], "").words[-1]
    answer = complete(rest, parser_of)
    return [answer.taken, *(f"{each}\t{told}" for each, told in answer.candidates)]


def complete(words: Sequence[str], parser_of: ParserOf) -> Answer:
    """The last word is begun; the first is the command, or a script of Apache Kafka's name."""
    command, *others, begun = words
    name = tool_name(Path(command).name)
    walk = Walk(_shape("", parser_of))
    if name not in TOOLS:
        name, others = _named(walk, others)
    place: Place | None
    if not name:
        place = walk.place(begun)
        if place.value is None:
            return _commands(begun, place)
    elif name == HELP:
        return _limited((*COMMANDS.items(),), begun)
    else:
        place = _place_in(name, others, begun, walk, parser_of)
    return _answer_of(place)


def _named(walk: Walk, words: list[str]) -> tuple[str, list[str]]:
    """The command, and what follows it; the options before it are taken."""
    for at, word in enumerate(words):
        is_value = walk.place("").value is not None
        if is_value or word.startswith("-"):
            walk.take(word)
        else:
            return tool_name(word), words[at + 1 :]
    return "", []


def _commands(begun: str, place: Place) -> Answer:
    if begun.startswith("-"):
        leading = [each for each in place.options if {*each.names} & {*LEADING}]
        return _answer_of(place._replace(options=leading))
    found: list[Candidate] = [*COMMANDS.items()]
    if begun.startswith("k"):
        found += SCRIPTS.items()
    return _limited(found, begun)


def _place_in(name: str, words: Sequence[str], begun: str, leading: Walk, parser_of: ParserOf) -> Place:
    connection = _shape("", parser_of)
    at = 0
    while at < len(words) and (words[at].startswith(LEADING) or leading.place("").value is not None):
        leading.take(words[at])
        at += 1
    if leading.place("").value is not None:
        return leading.place(begun)
    words = words[at:]
    both = begun.startswith("-") and not words and name in TOOLS
    modules = {name} if name == START else {*_modules(name)} if both else {module_of(name, words)}
    places = []
    for module in sorted(modules):
        walk = Walk(_shape(module, parser_of), connection if name != START else None)
        walk.given |= leading.given
        for word in words:
            walk.take(word)
        places.append(walk.place(begun))
    first, *more = places
    options = {each.names[-1]: each for place in (first, *more) for each in place.options}
    return first._replace(options=[*options.values()])


def _modules(name: str) -> list[str]:
    return [each for each in (TOOLS[name].module, TOOLS[name].kafka) if each is not None]


def _shape(module: str, parser_of: ParserOf) -> Shape:
    """Of a tool's module, of `start`, or, without a name, of the options that may stand before each tool."""
    own = (
        SOURCE.joinpath(*module.split(".")[1:]).with_suffix(".py") if "." in module else SOURCE / "node" / "command.py"
    )
    near = own.parent.glob("*.py")
    shared = [SOURCE / "cli" / f"{each}.py" for each in ("connection", "output", "parsing", "questions")]
    return known_shape(module, sorted({*near, *shared}), lambda: shape_of(parser_of(module)))


def _answer_of(place: Place) -> Answer:
    if place.value is None:
        found = [
            (name, each.help) for each in place.options for name in each.names if len(name) > 2 or len(place.begun) == 2
        ]
        return _limited([*place.actions.items(), *found], place.begun)
    if place.value.kind in (Kind.FILES, Kind.FOLDERS):
        return Answer([], place.value.kind)
    from moldau.cli.completion.values import values_of

    found = [(f"{place.before}{each}", "") for each in values_of(place.value, place.begun, place.given)]
    return _limited(found, "")._replace(taken="nospace" if place.value.ending else "")


def _limited(found: Iterable[Candidate], begun: str) -> Answer:
    """Names with control characters have no place in a line of candidates."""
    fitting = [(each, told) for each, told in found if each.startswith(begun) and each.isprintable()]
    return Answer(fitting[:CANDIDATES_MAX])


def parser_of_tool(module: str) -> ArgumentParser:
    from moldau.cli.connection import add_connection_options
    from moldau.cli.parsing import Parser, made_parser

    if module:
        return made_parser(import_module(module).main)
    parser = Parser()
    add_connection_options(parser)
    return parser
