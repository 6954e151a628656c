"""The `moldau` command's tools: how each is found, begins and ends."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from moldau.cli.failures import FAILED, INTERRUPTED, OK, CommandFailed, UsageError, meant
from moldau.cli.tools import ABSENT, GROUPS, HELP, LEADING, TOOLS, module_of, tool_name
from moldau.core.standard_streams import occupy_standard_streams

DESCRIPTION = """\
usage: moldau COMMAND ...

Event streaming that speaks Apache Kafka's protocol: brokers, and the tools for them and for any other Kafka.

  start              run a broker, or several
  help COMMAND       the options of a command, with examples
"""
EXAMPLES = """\
examples:
  moldau start                                      a broker on localhost:9092, its data in ./moldau-data
  moldau start --port 0 --data-dir /tmp/try         on a free port, which it prints
  moldau topics create orders --partitions 3
  echo 'hello' | moldau produce orders
  moldau consume orders --from-beginning -e
  moldau -b kafka-1:9092 topics list                another cluster; or give it a name: moldau profile --help

Names of Apache Kafka's scripts work, too: `moldau kafka-topics.sh --list --bootstrap-server localhost:9092`.

exit codes: 0 done, 1 the cluster said no or did not answer, 2 the command line or its input is wrong
"""
NAME_WIDTH = max(map(len, TOOLS))
VERSION = "--version"
OUTPUT_OPTIONS = ("-o", "--output")


def main(arguments: list[str]) -> int:
    return run_tool("", lambda: _main(arguments))


def _main(arguments: list[str]) -> int:
    check_text(arguments)
    leading, rest = split_leading(arguments)
    if rest[:1] == ["help"] and len(rest) > 1:
        rest = [*rest[1:], HELP[1]]
    if rest[:1] in ([VERSION], ["help"], *([each] for each in HELP)):
        print(version() if rest[0] == VERSION else overview())
        return OK
    if not rest:
        raise UsageError(f"which command? There are start, {', '.join(TOOLS)}; see: moldau help")
    name, words = tool_name(rest[0]), rest[1:]
    if rest[0].startswith("-"):
        raise UsageError(f"unknown option {rest[0]}{meant(rest[0], [VERSION, *HELP, *LEADING])}; see: moldau help")
    if name in ABSENT:
        raise UsageError(f"no {rest[0]}: {ABSENT[name]}")
    if name not in TOOLS:
        raise UsageError(f"unknown command {rest[0]!r}{meant(rest[0], ['start', *TOOLS])}; see: moldau help")
    more, words = split_leading(words)
    module = module_of(name, words, is_script=rest[0] != name)
    if VERSION in words[:1] or (VERSION in words and module == TOOLS[name].kafka):
        print(version())
        return OK
    # Behind an action, whose parser takes them, or the question which actions there are.
    first = 0 if not words or (words[0].startswith("-") and words[0] not in HELP) else 1
    given = [*words[:first], *leading, *more, *words[first:]]
    return run_tool(name, lambda: command_of(module)(given), output=asked_output(given))


def check_text(arguments: Sequence[str]) -> None:
    """Python keeps bytes that are no text as surrogates, which nothing takes that is asked with them."""
    for number, argument in enumerate(arguments, 1):
        try:
            argument.encode()
        except UnicodeEncodeError:
            shown = argument.encode(errors="surrogateescape")
            raise UsageError(f"argument {number} is no text in UTF-8: {shown!r}") from None


def split_leading(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The options that say where the cluster is, with their values, and what follows them."""
    at = 0
    while at < len(arguments):
        word = arguments[at]
        if word in LEADING:
            at += 2
        elif word.startswith(tuple(f"{each}=" if each.startswith("--") else each for each in LEADING)):
            at += 1
        else:
            break
    return [*arguments[:at]], [*arguments[at:]]


def command_of(module: str) -> Callable[[list[str]], int]:
    # Only the tool that runs is imported: the client library takes longer to load than most tools take to finish.
    command: Callable[[list[str]], int] = import_module(module).main
    return command


def asked_output(arguments: Sequence[str]) -> str | None:
    """The form in which a failure is told: it may come before anything was parsed."""
    for at, word in enumerate(arguments):
        if word in OUTPUT_OPTIONS:
            return next(iter(arguments[at + 1 :]), None)
        if word.startswith(f"{OUTPUT_OPTIONS[1]}="):
            return word.partition("=")[2]
    return None


def run_tool(name: str, command: Callable[[], int], *, output: str | None = None) -> int:
    """A tool's exit code, with every expected way to fail turned into one line."""
    try:
        check_streams(name)
        show_control_characters(name)
        exit_code = command()
        if sys.stdout is not None:
            sys.stdout.flush()
        return exit_code
    except BrokenPipeError:
        leave_output()
        return OK
    except KeyboardInterrupt as ended:
        return getattr(ended, "exit_code", INTERRUPTED)
    except Exception as wrong:
        if is_lost_interrupt(wrong):
            return INTERRUPTED
        failed = expected(wrong)
        if failed is None:
            raise
        if isinstance(wrong, OSError):
            leave_output()
        return complain(name, str(failed), exit_code=failed.exit_code, output=output)


def is_lost_interrupt(wrong: Exception) -> bool:
    """What confluent-kafka makes of Ctrl-C that comes while one of its callbacks runs: it loses the exception."""
    return (
        isinstance(wrong, SystemError)
        and "confluent_kafka" in sys.modules
        and "without setting an exception" in str(wrong)
    )


def leave_output() -> None:
    from moldau.cli.output import close_quietly

    close_quietly()


def expected(wrong: Exception) -> CommandFailed | None:
    """What a user is told; None for what is our own mistake."""
    if isinstance(wrong, CommandFailed):
        return wrong
    if isinstance(wrong, OSError):
        where = f": {wrong.filename}" if wrong.filename is not None else ""
        return CommandFailed(f"input or output: {wrong.strerror or wrong}{where}", exit_code=FAILED)
    return of_client(wrong) or of_librdkafka(wrong)


def of_client(wrong: Exception) -> CommandFailed | None:
    if "moldau.client.cluster" not in sys.modules:
        return None
    from moldau.cli.connection import nobody_listens
    from moldau.client.cluster import NoAnswer, NobodyListens, Refused
    from moldau.client.connection import Unsupported
    from moldau.wire.unencodable import EncodeError

    if isinstance(wrong, NobodyListens):
        return nobody_listens(wrong.servers)
    if isinstance(wrong, EncodeError):  # such as a name of more bytes than its field can hold
        return UsageError(f"it fits into no request: {str(wrong).partition(' (version ')[0]}")
    if isinstance(wrong, NoAnswer | Refused | Unsupported):
        return CommandFailed(str(wrong))
    return None


def of_librdkafka(wrong: Exception) -> CommandFailed | None:
    if "confluent_kafka" not in sys.modules:
        return None
    from confluent_kafka import KafkaException

    from moldau.cli.librdkafka import reason

    if isinstance(wrong, SystemError):  # made of it where a fatal failure is logged while it is on its way
        wrong = wrong.__cause__  # type: ignore[assignment]
    return CommandFailed(reason(wrong)) if isinstance(wrong, KafkaException) else None


def check_streams(name: str) -> None:
    """Python has None for a stream that was closed before it started."""
    occupy_standard_streams()
    if not name:
        return
    needed, stream = ("input", sys.stdin) if TOOLS[name].reads_input else ("output", sys.stdout)
    if stream is None:
        raise CommandFailed(f"standard {needed} is closed")


def show_control_characters(name: str) -> None:
    if sys.stdout is not None and sys.stdout.isatty() and name and not TOOLS[name].draws:
        from moldau.cli.terminal import VisibleText

        if not isinstance(sys.stdout, VisibleText):
            sys.stdout = VisibleText(sys.stdout)


def complain(name: str, message: str, *, exit_code: int, output: str | None) -> int:
    if sys.stderr is not None:  # or print would take standard output for it
        from moldau.core.visible import visible

        told = visible("; ".join(line.strip() for line in message.split("\n") if line.strip()))
        print(f"moldau {name}: {told}" if name else f"moldau: {told}", file=sys.stderr)
    if output is not None and sys.stdout is not None:
        from moldau.cli.output import print_failure

        print_failure(message, output=output)
    return exit_code


def overview() -> str:
    parts = [DESCRIPTION]
    for title, tools in GROUPS.items():
        if tools:
            parts.append(f"{title}:")
            parts += [f"  {name:<{NAME_WIDTH}} {tool.summary}" for name, tool in tools.items()]
            parts.append("")
    return "\n".join([*parts, EXAMPLES.rstrip()])


def version() -> str:
    from importlib.metadata import version as installed

    return f"moldau {installed('moldau')}"
