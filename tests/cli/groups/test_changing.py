"""`moldau groups reset`, `delete` and `delete-offsets`: what is shown, asked, done and refused."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest

from moldau.cli.groups.rules import parse_rule
from moldau.client.groups.resetting import CURRENT, EARLIEST, LATEST, Rule, Target
from tests.cli.conftest import Tool, command, environment

Done = Callable[..., str]
NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("earliest", EARLIEST),
        ("start", EARLIEST),
        ("latest", LATEST),
        ("end", LATEST),
        ("current", CURRENT),
        ("47", Rule(Target.OFFSET, 47)),
        ("+10", Rule(Target.SHIFT, 10)),
        ("-10", Rule(Target.SHIFT, -10)),
        ("@-1h", Rule(Target.TIMESTAMP, NOW_MS - 3_600_000)),
        ("@-2d", Rule(Target.TIMESTAMP, NOW_MS - 2 * 86_400_000)),
        ("@2023-11-14", Rule(Target.TIMESTAMP, 1_699_920_000_000)),
        ("@2023-11-14T22:13:20", Rule(Target.TIMESTAMP, NOW_MS)),
        ("@2023-11-14T23:13:20+01:00", Rule(Target.TIMESTAMP, NOW_MS)),
        ("@1700000000000", Rule(Target.TIMESTAMP, NOW_MS)),
    ],
)
def test_where_to_is_said_in_few_words(text: str, wanted: Rule) -> None:
    assert parse_rule(text, now_ms=NOW_MS) == wanted


@pytest.mark.parametrize("text", ["", "lastest", "@", "@yesterday", "1.5", "++1", "0x1", "1" * 19])
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_rule(text, now_ms=NOW_MS)


def offsets(done: Done, group: str) -> list[tuple[int, int]]:
    rows = json.loads(done("groups", "lag", group, "-o", "json"))
    return [(row["partition"], row["offset"]) for row in rows]


SHOWN = (
    ("earliest", 0, None),
    ("latest", 10, None),
    ("current", 4, None),
    ("7", 7, None),
    ("99", 10, "99 is after the end"),
    ("-9", 0, "-5 is before the start"),
    ("@-1h", 0, None),
    ("@2099-01-31", 10, "no record is as late: the end"),
)


def test_every_rule_is_shown_before_it_is_done(done: Done, resting: str, filled: str) -> None:
    for where, wanted, note in SHOWN:
        shown = json.loads(done("groups", "reset", resting, "--all-topics", "--to", where, "--dry-run", "-o", "json"))
        row = {"group": resting, "topic": filled, "partition": 0, "current": 4, "new": wanted, "change": wanted - 4}
        assert shown == [{**row, "note": note, "done": False}]
    assert offsets(done, resting) == [(0, 4)]


def test_a_reset_is_done_with_yes(done: Done, resting: str, filled: str) -> None:
    told = done("groups", "reset", resting, "--topic", f"{filled}:0", "--to", "+2", "--yes")
    assert [line.split() for line in told.splitlines()] == [
        ["TOPIC", "PARTITION", "CURRENT", "NEW", "CHANGE"],
        [filled, "0", "4", "6", "2"],
        ["reset", "1", "partition", "of", "group", resting],
    ]
    assert offsets(done, resting) == [(0, 6)]
    (row, _) = json.loads(done("groups", "reset", resting, "--topic", filled, "--to", "0", "--yes", "-o", "json"))
    assert (row["current"], row["new"], row["done"]) == (6, 0, True)
    assert offsets(done, resting) == [(0, 0), (1, 0)]


def test_a_group_may_be_made_before_its_first_member(done: Done, group: str, filled: str) -> None:
    done("groups", "reset", group, "--topic", filled, "--to", "5", "--yes")
    assert offsets(done, group) == [(0, 5), (1, 0)]


def test_without_yes_and_a_terminal_nothing_is_done(tool: Tool, done: Done, resting: str, filled: str) -> None:
    ended = tool("groups", "reset", resting, "--topic", filled, "--to", "earliest")
    asked = (
        f"reset 2 partitions of group {resting} to this? Without a terminal to ask at it takes --yes; nothing was done"
    )
    assert (ended.returncode, ended.stderr) == (2, f"moldau groups: {asked}\n")
    assert ended.stdout.split()[:5] == ["TOPIC", "PARTITION", "CURRENT", "NEW", "CHANGE"]
    ended = tool("groups", "reset", resting, "--topic", filled, "--to", "earliest", "-o", "json")
    told = "-o json asks nothing; add --yes, or --dry-run to see what would be"
    assert (ended.returncode, json.loads(ended.stdout)) == (2, {"error": told})
    for words in (("delete", resting), ("delete-offsets", resting, "--topic", filled)):
        ended = tool("groups", *words)
        assert (ended.returncode, ended.stdout) == (2, "")
        assert ended.stderr.endswith("? Without a terminal to ask at it takes --yes; nothing was done\n")
    assert offsets(done, resting) == [(0, 4)]


def test_on_a_terminal_it_asks(bootstrap: str, done: Done, resting: str) -> None:
    for answer, exit_code, wanted in ((b"n\n", 1, [(0, 4)]), (b"\n", 1, [(0, 4)]), (b"y\n", 0, [(0, 10)])):
        said, code = answered(bootstrap, answer, "groups", "reset", resting, "--all-topics", "--to", "latest")
        assert f"reset 1 partition of group {resting} to this? [y/N] ".encode() in said
        assert (code, offsets(done, resting)) == (exit_code, wanted)


def answered(bootstrap: str, answer: bytes, *words: str) -> tuple[bytes, int]:
    """What a command says on a terminal where somebody answers its question."""
    pid, terminal = os.forkpty()
    if pid == 0:
        line = command(*words)
        os.execve(line[0], line, environment(bootstrap))
    said = b""
    while not said.endswith(b"[y/N] "):
        said += os.read(terminal, 4096)
    os.write(terminal, answer)
    try:
        while chunk := os.read(terminal, 4096):
            said += chunk
    except OSError:  # Linux tells so that the other end has closed
        pass
    os.close(terminal)
    return said, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_active_groups_are_left_alone(tool: Tool, done: Done, active: str, filled: str) -> None:
    ended = tool("groups", "reset", active, "--topic", filled, "--to", "latest", "--yes")
    told = f"group '{active}' is Stable with 1 member (clerk at 127.0.0.1); stop its members first"
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"moldau groups: {told}\n")
    ended = tool("groups", "delete", active, "--yes")
    told = f"group '{active}' has members; stop them first"
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"moldau groups: {told}\n")
    ended = tool("groups", "delete-offsets", active, "--topic", filled, "--yes")
    told = f"{filled}-0: the group has members that read this topic; stop them first"
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"moldau groups: {told}\n")
    assert offsets(done, active) == [(0, 4), (1, None)]


def test_offsets_and_groups_are_deleted(tool: Tool, done: Done, resting: str, filled: str) -> None:
    done("groups", "reset", resting, "--topic", filled, "--to", "4", "--yes")
    assert done("groups", "delete-offsets", resting, "--topic", f"{filled}:1", "--yes") == (
        f"deleted offset 0 of {filled}-1\n"
    )
    assert offsets(done, resting) == [(0, 4)]
    ended = tool("groups", "delete-offsets", resting, "--topic", f"{filled}:1", "--yes")
    told = f"group '{resting}' has committed nothing for {filled}:1"
    assert (ended.returncode, ended.stderr) == (1, f"moldau groups: {told}\n")
    ended = tool("groups", "delete", resting, "nobody-at-all", "--yes")
    told = "group 'nobody-at-all' does not exist; see: moldau groups list"
    assert (ended.returncode, ended.stdout) == (1, f"deleted {resting}\n")
    assert ended.stderr == f"moldau groups: {told}\n"
    assert resting not in done("groups", "list")


def test_programs_hear_what_was_deleted(tool: Tool, resting: str, filled: str) -> None:
    ended = tool("groups", "delete-offsets", resting, "--topic", f"{filled}:0", "--yes", "-o", "json")
    assert json.loads(ended.stdout) == [{"topic": filled, "partition": 0, "offset": 4, "done": "deleted"}]
    ended = tool("groups", "delete", "nobody-at-all", "--yes", "-o", "json")
    told = "group 'nobody-at-all' does not exist; see: moldau groups list"
    assert (ended.returncode, json.loads(ended.stdout)) == (1, [{"group": "nobody-at-all", "error": told}])


WRONG = (
    ("reset GROUP --to latest", 2, "which topics? Give --topic TOPIC, TOPIC:0,1 for some partitions, or --all-topics"),
    (
        "reset GROUP --to lastest --all-topics",
        2,
        "--to: 'lastest' is no place in a log; expected earliest, latest, current, 47, +10, -10, @-1h or @2026-01-31",
    ),
    ("reset GROUP --to latest --topic nothing-at-all --yes", 1, "topic 'nothing-at-all' does not exist"),
    ("reset GROUP --to latest --topic %t:9 --yes", 1, "partition %t-9 does not exist"),
    ("reset GROUP --to latest --topic %t:x", 2, "Invalid partition 'x' specified in topic arg '%t:x'"),
    ("reset GROUP --to latest --topic :1", 2, "Invalid topic arg ':1', expected topic name and partitions"),
    (
        "reset nobody-at-all --to latest --all-topics --yes",
        1,
        "group 'nobody-at-all' has committed nothing; name topics with --topic",
    ),
    (
        "reset GROUP --to +1 --topic %t:1 --yes",
        1,
        "group '%g' has committed nothing for %t-1, so there is nothing to count from;"
        " use --to earliest, latest or an offset",
    ),
)


def test_what_is_wrong_is_said_in_one_line(tool: Tool, done: Done, resting: str, filled: str) -> None:
    for words, code, message in WRONG:
        ended = tool("groups", *(each.replace("GROUP", resting).replace("%t", filled) for each in words.split()))
        told = message.replace("%g", resting).replace("%t", filled)
        assert (ended.returncode, ended.stdout, ended.stderr) == (code, "", f"moldau groups: {told}\n")
    assert offsets(done, resting) == [(0, 4)]
