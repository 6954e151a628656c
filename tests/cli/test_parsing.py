"""What the parser of all tools says to a wrong command line, and arguments that it makes something of."""

from __future__ import annotations

import subprocess
from argparse import ArgumentTypeError

import pytest

from moldau.cli.failures import UsageError
from moldau.cli.main import asked_output, main, split_leading
from moldau.cli.parsing import Parser, unescaped, whole
from moldau.cli.tools import ABSENT, TOOLS, tool_name
from tests.cli.conftest import command, run_tool


def tool_parser() -> Parser:
    parser = Parser(prog="moldau paint")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    wall = actions.add_parser("wall")
    wall.add_argument("--colour", choices=("red", "blue"))
    wall.add_argument("walls", nargs="*")
    return parser


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["wal"], "unknown action 'wal'; did you mean wall?; see: moldau paint --help"),
        (["xyz"], "unknown action 'xyz'; expected wall; see: moldau paint --help"),
        (["wall", "--color", "red"], "unknown option --color; did you mean --colour?; see: moldau paint wall --help"),
        (["wall", "--zz=1"], "unknown option --zz; see: moldau paint wall --help"),
        (
            ["wall", "--colour", "reed"],
            "unknown value 'reed' of --colour; did you mean red?; see: moldau paint wall --help",
        ),
        ([], "the following arguments are required: ACTION; see: moldau paint --help"),
    ],
    ids=" ".join,
)
def test_a_mistake_is_answered_by_what_was_meant(arguments: list[str], told: str) -> None:
    with pytest.raises(UsageError) as failed:
        tool_parser().parse_args(arguments)
    assert (str(failed.value), failed.value.exit_code) == (told, 2)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (r"\t", "\t"),
        (r"a\nb", "a\nb"),
        (r"\\t", "\\t"),
        (r"\x41\x7c", "A|"),
        ("plain", "plain"),
        ("", ""),
        (r"\0", "\0"),
    ],
)
def test_escapes_mean_what_they_do_in_c(typed: str, meant: str) -> None:
    assert unescaped(typed) == meant


@pytest.mark.parametrize("typed", [r"\q", r"\xg1", r"\x4"])
def test_unknown_escapes_are_refused(typed: str) -> None:
    with pytest.raises(ArgumentTypeError):
        unescaped(typed)


def test_whole_numbers_have_bounds() -> None:
    number = whole(-1, 10, "partition")
    assert [number("-1"), number("10")] == [-1, 10]
    for text in ("11", "-2", "1.0", "", "x", "١"):
        with pytest.raises(ArgumentTypeError, match="is no partition; expected -1 to 10"):
            number(text)


def test_options_that_say_where_the_cluster_is_may_lead() -> None:
    assert split_leading(["-b", "h:1", "-Xa=b", "--profile=p", "topics", "-b", "x"]) == (
        ["-b", "h:1", "-Xa=b", "--profile=p"],
        ["topics", "-b", "x"],
    )


@pytest.mark.parametrize("before", [("-b",), ("--bootstrap-server",)])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_they_are_taken_before_and_behind_tool_and_action(bootstrap: str, before: tuple[str], place: int) -> None:
    words = ["topics", "list"]
    words[place:place] = [*before, bootstrap]
    assert run_tool("127.0.0.1:1", *words).returncode == 0


def test_the_form_of_a_failure_is_known_before_anything_is_parsed() -> None:
    found = [asked_output(words) for words in (["-o", "json"], ["--output=yaml"], ["list"], ["-o"])]
    assert found == ["json", "yaml", None, None]


def test_a_failure_is_json_where_json_was_asked_for() -> None:
    finished = run_tool("127.0.0.1:1", "topics", "list", "-o", "jsonl")
    assert finished.stdout == '{"error": "no broker answers at 127.0.0.1:1; start one with: moldau start"}\n'
    assert finished.returncode == 1


@pytest.mark.parametrize("name", ["kafka-topics.sh", "kafka-topics", "topics.sh", "topics"])
def test_a_script_works_by_a_change_of_the_name(name: str) -> None:
    assert tool_name(name) == "topics"


@pytest.mark.parametrize(
    "words", ["topics --version", "kafka-topics.sh --bootstrap-server a:1 --version", "dump-log --version"]
)
def test_apache_kafkas_tools_tell_the_version(capsys: pytest.CaptureFixture[str], words: str) -> None:
    assert main(words.split()) == 0
    assert capsys.readouterr().out.startswith("moldau ")


@pytest.mark.parametrize("name", ABSENT)
def test_a_script_without_a_counterpart_says_what_there_is(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main([f"kafka-{name}.sh", "--list"]) == 2
    assert capsys.readouterr().err == f"moldau: no kafka-{name}.sh: {ABSENT[name]}\n"
    assert name not in TOOLS


@pytest.mark.parametrize("name", ["topics", "groups", "acls"])
def test_a_script_tells_of_its_own_options(capsys: pytest.CaptureFixture[str], name: str) -> None:
    """And so does whoever asks behind where the cluster is; by our name it is our actions."""
    for words in ([f"kafka-{name}.sh"], ["help", f"kafka-{name}.sh"], ["-b", "a:1", f"kafka-{name}", "-b", "a:1"]):
        with pytest.raises(SystemExit) as ended:
            main([*words, *([] if words[0] == "help" else ["--help"])])
        assert ended.value.code == 0
        assert "--list" in capsys.readouterr().out.split("options:")[0]
    with pytest.raises(SystemExit):
        main([name, "--bootstrap-server", "a:1", "--help"])
    assert "ACTION" in capsys.readouterr().out
    assert main([f"kafka-{name}.sh"]) == 2
    assert "--list" in capsys.readouterr().err


def test_an_argument_that_is_no_text_is_one_line() -> None:
    finished = subprocess.run([*command("topics", "create"), b"caf\xe9"], capture_output=True, check=False)
    assert finished.returncode == 2
    assert finished.stderr == b"moldau: argument 3 is no text in UTF-8: b'caf\\xe9'\n"


@pytest.mark.parametrize("words", [("help",), ("--help",), ("-h",)], ids=" ".join)
def test_help_names_every_tool(words: tuple[str, ...]) -> None:
    printed = run_tool("", *words).stdout
    assert not [name for name in ("start", *TOOLS) if f"  {name} " not in printed]


def test_help_of_a_tool_and_of_its_action() -> None:
    assert run_tool("", "help", "topics").stdout == run_tool("", "topics", "--help").stdout
    assert run_tool("", "help", "topics", "create").stdout.startswith("usage: moldau topics create")
