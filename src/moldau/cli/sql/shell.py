"""A conversation in SQL: statements end with a semicolon, may take many lines, and are remembered."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from moldau.cli.failures import OK, CommandFailed
from moldau.cli.sql.output import print_result
from moldau.cli.sql.waiting import WaitingLine
from moldau.spark.pipelines.plan import PipelineError
from moldau.spark.secrets import masked
from moldau.spark.sql.refusals import Refused
from moldau.spark.sql.session import SqlSession
from moldau.spark.sql.staying import StreamFailed, home

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

WORDS = (
    "select", "from", "where", "group by", "order by", "limit", "join", "left join", "on", "having", "with", "as",
    "count(*)", "sum(", "avg(", "min(", "max(", "window(", "create stream", "create table", "create view",
    "drop stream", "show topics", "show streams", "describe", "follow",
)  # fmt: skip
HELP = """\
  select … from TOPIC;              rows that are there now
  follow select … from TOPIC;       and those that arrive, until Ctrl-C
  create stream NAME as select …;   a query that stays, into the topic NAME
  show topics;  show streams;  describe NAME;  drop stream NAME;
  \\q or Ctrl-D ends, \\h helps\
"""


def converse(session: SqlSession, topics: Callable[[], list[str]], *, output: str, line: WaitingLine) -> int:
    lines = prompted(topics) if sys.stdin.isatty() else plain_lines()
    if sys.stdin.isatty():
        print("Statements end with ';'. \\h for help.")
    for statement in statements(lines):
        if statement == "\\h":
            print(HELP)
            continue
        answer(session, statement, output=output, line=line)
    return OK


def answer(session: SqlSession, statement: str, *, output: str, line: WaitingLine) -> None:
    """What is wrong is said, and the conversation goes on."""
    follow = statement.lower().startswith("follow ")
    try:
        for result in line.until_first(session.execute(statement[7:] if follow else statement, follow=follow)):
            rows = line.until_first(result.rows)
            print_result(result._replace(rows=rows), output=output, flush=follow)
    except (PipelineError, Refused, StreamFailed, CommandFailed) as wrong:
        print(wrong, file=sys.stderr)
    except KeyboardInterrupt:
        print()


def statements(lines: Iterable[str]) -> Iterable[str]:
    """Lines gathered until one ends with a semicolon; words that begin with a backslash stand alone."""
    gathered: list[str] = []
    for line in lines:
        word = line.strip()
        if not gathered and word in ("\\q", "exit", "quit", "exit;", "quit;"):
            return
        if not gathered and word == "\\h":
            yield word
            continue
        gathered.append(line)
        if word.endswith(";"):
            yield "\n".join(gathered).strip()
            gathered = []
    if "".join(gathered).strip():
        yield "\n".join(gathered).strip()


def plain_lines() -> Iterable[str]:
    for line in sys.stdin:
        yield line.rstrip("\n")


def prompted(topics: Callable[[], list[str]]) -> Iterable[str]:
    session = prompt_session(topics)
    while True:
        try:
            yield session.prompt("moldau> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def prompt_session(topics: Callable[[], list[str]]) -> PromptSession[str]:
    try:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import WordCompleter
        from prompt_toolkit.history import FileHistory
    except ImportError:
        raise CommandFailed("the shell needs prompt_toolkit: run pip install 'moldau[spark]'") from None
    history = home() / "sql_history"
    history.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(history, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    named = [form for name in topics() for form in (name, f"`{name}`")]
    # Words end at spaces: topics have dots and hyphens in their names.
    words = WordCompleter([*WORDS, *named], ignore_case=True, WORD=True)

    class HistoryWithoutSecrets(FileHistory):
        def store_string(self, string: str) -> None:
            super().store_string(masked(string))

    return PromptSession(history=HistoryWithoutSecrets(str(history)), completer=words)
