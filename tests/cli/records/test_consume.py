"""`moldau consume` against a running broker."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests.cli.conftest import Tool, command, environment

Done = Callable[..., str]
WAIT_S_MAX = 30.0


@pytest.fixture
def numbers(done: Done, topic: str) -> str:
    """A topic with the numbers 0 to 9 in partition 0, one every second from second 1000."""
    lines = [f'{{"key": "k{n}", "value": "{n}", "timestamp": {1_000_000 + n * 1_000}}}' for n in range(10)]
    done("produce", topic, "-p", "0", "-i", "json", stdin="\n".join(lines))
    return topic


@pytest.mark.parametrize(
    ("offset", "first"),
    [("start", 0), ("7", 7), ("-3", 7), ("-30", 0), ("+2", 2), ("@1004000", 4), ("@1970-01-01T00:16:48.500", 9)],
)
def test_where_to_begin(done: Done, numbers: str, offset: str, first: int) -> None:
    shown = done("consume", numbers, "-p", "0", "-e", "--offset", offset)
    assert shown.split() == [str(number) for number in range(first, 10)]


def test_nothing_from_the_end_on(done: Done, numbers: str) -> None:
    assert done("consume", numbers, "-e") == ""
    assert done("consume", numbers, "-e", "--offset", "@2000-01-01") == ""


def test_no_more_than_wanted(done: Done, numbers: str) -> None:
    assert done("consume", numbers, "--from-beginning", "-n", "3").split() == ["0", "1", "2"]


def test_chosen_fields_and_formats(done: Done, numbers: str) -> None:
    fields = ("--show", "partition,offset,timestamp,key,value")
    assert done("consume", numbers, "--from-beginning", "-n", "1", *fields) == "0\t0\t1000000\tk0\t0\n"
    assert done("consume", numbers, "--from-beginning", "-n", "2", "-f", r"%t/%p@%o %k=%v (%V)\x21\n") == (
        f"{numbers}/0@0 k0=0 (1)!\n{numbers}/0@1 k1=1 (1)!\n"
    )


@pytest.mark.parametrize(
    ("options", "exit_code", "complaint"),
    [
        (("--offset", "99"), 1, "offset 99 is outside 0..10"),
        (("-p", "5"), 1, "has no partition 5; it has 2"),
        (("--offset", "soon"), 2, "'soon' is no offset"),
        (("-f", "%q"), 2, "unknown field '%q' in the format"),
        (("--show", "colour"), 2, "unknown field 'colour'"),
    ],
)
def test_what_cannot_be_read(
    tool: Tool, numbers: str, options: tuple[str, ...], exit_code: int, complaint: str
) -> None:
    finished = tool("consume", numbers, *options)
    assert finished.returncode == exit_code
    assert complaint in finished.stderr
    assert finished.stderr.count("\n") == 1


def test_a_missing_topic_says_how_to_make_it(tool: Tool, moldau_topic: str) -> None:
    finished = tool("consume", moldau_topic)
    assert finished.returncode == 1
    assert finished.stderr == (
        f"moldau consume: topic {moldau_topic!r} does not exist; create it with: moldau topics create {moldau_topic}\n"
    )


@pytest.fixture
def _children_heed_ctrl_c() -> Iterator[None]:
    """A shell that runs the tests in the background has SIGINT ignored, and children inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_children_heed_ctrl_c")
def test_new_records_arrive_until_ctrl_c(bootstrap: str, done: Done, numbers: str) -> None:
    arguments = command("consume", numbers, "--offset", "-1")
    with subprocess.Popen(
        arguments, env=environment(bootstrap), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"9\n"
        done("produce", numbers, "-p", "1", stdin="new\n")
        assert reader.stdout.readline() == b"new\n"
        reader.send_signal(signal.SIGINT)
        rest, complaints = reader.communicate(timeout=WAIT_S_MAX)
    assert (reader.returncode, rest, complaints) == (0, b"", b"")


def test_a_reader_that_has_enough_is_no_failure(bootstrap: str, numbers: str) -> None:
    arguments = command("consume", numbers, "--from-beginning")
    with subprocess.Popen(
        arguments, env=environment(bootstrap), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as reader:
        assert reader.stdout is not None
        assert reader.stderr is not None
        reader.stdout.close()
        complaints = reader.stderr.read()
        assert (reader.wait(WAIT_S_MAX), complaints) == (0, b"")


def test_output_that_cannot_be_written_is_one_line(bootstrap: str, numbers: str) -> None:
    with open("/dev/full", "wb") as full:
        finished = subprocess.run(
            command("consume", numbers, "--from-beginning", "-e"),
            env=environment(bootstrap),
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=WAIT_S_MAX,
            check=False,
        )
    assert finished.returncode == 1
    assert finished.stderr == b"moldau consume: input or output: No space left on device\n"
