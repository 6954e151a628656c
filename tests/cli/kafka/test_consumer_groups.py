"""`moldau consumer-groups`: what is wrong, and with which exit code. What it prints is in tests/suites."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

import moldau
from moldau.client.cluster import Cluster
from moldau.client.groups.committed import commit_offsets
from moldau.core.ids import TopicPartition
from tests.cli.conftest import Tool, run_tool

Done = Callable[..., str]
COMMIT_S_MAX = 30.0
NO_EXECUTION = "WARN: No action will be performed as the --execute option is missing."


@pytest.fixture
def group(bootstrap: str, topic: str) -> str:
    name = f"billing-{uuid.uuid4().hex[:8]}"
    with Cluster(bootstrap, client_id="test", timeout_s=COMMIT_S_MAX) as cluster:
        assert set(commit_offsets(cluster, name, {TopicPartition(topic, 0): 0}).values()) == {0}
    return name


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "--group g",
            "Command must include exactly one action:"
            " --list, --describe, --delete, --reset-offsets, --delete-offsets, --validate-regex",
        ),
        (
            "--list --describe --group g",
            "Command must include exactly one action:"
            " --list, --describe, --delete, --reset-offsets, --delete-offsets, --validate-regex",
        ),
        ("--describe", "--describe takes one of these options: --group, --all-groups"),
        ("--describe --group g --all-groups", "--group and --all-groups exclude each other"),
        (
            "--describe --group g --members --state",
            "--describe takes at most one of these options: --members, --offsets, --state",
        ),
        ("--describe --group g --state empty", "--describe does not take a value for --state"),
        ("--describe --group g --type", "--type is for --list"),
        ("--list --members", "--members is for --describe"),
        ("--list --type share", "Invalid types list 'share'. Valid types are: Classic, Consumer"),
        (
            "--list --state gone",
            "Invalid state list 'gone'. Valid states are:"
            " PreparingRebalance, CompletingRebalance, Stable, Dead, Empty, Assigning, Reconciling",
        ),
        ("--delete --group g --topic t", "--delete is for whole groups; for some topics there is --delete-offsets"),
        ("--delete-offsets --group g", "--delete-offsets takes one --group, and --topic"),
        (
            "--reset-offsets --group g --topic t",
            "--reset-offsets takes one of these options: --to-offset, --shift-by, --to-datetime, --by-duration,"
            " --to-earliest, --to-latest, --to-current, --from-file",
        ),
        (
            "--reset-offsets --group g --to-latest",
            "One of the reset scopes should be defined: --all-topics, --topic",
        ),
        (
            "--reset-offsets --group g --topic t --to-latest --to-earliest",
            "--to-earliest and --to-latest exclude each other",
        ),
        (
            "--reset-offsets --group g --topic t --to-latest --dry-run --execute",
            "--reset-offsets only accepts one of --execute and --dry-run",
        ),
        (
            "--reset-offsets --group g --topic t --by-duration 5m",
            "argument --by-duration: '5m' is no duration; expected PnDTnHnMnS, such as P1D, PT2H or PT1H30M",
        ),
        ("--list --timeout 5s", "argument --timeout: '5s' is no time in milliseconds; expected 1 to 3600000"),
        ("--list --grup g", "unknown option --grup; did you mean --group?"),
    ],
)
def test_options_that_do_not_go_together(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    from moldau.cli.main import main

    assert main(["consumer-groups", *words.split()]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == f"moldau consumer-groups: {message}; see: moldau consumer-groups --help\n"


def test_what_fails_ends_with_1_and_says_why_on_standard_output(tool: Tool, group: str, topic: str) -> None:
    """Where Apache Kafka's tool says it; that ends with 0."""
    begun = "\nError: Executing consumer group command failed due to "
    ended = tool("consumer-groups", "--describe", "--group", group, "--group", "nobody-at-all")
    told = f"{begun}org.apache.kafka.common.errors.GroupIdNotFoundException: Group nobody-at-all not found.\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, told, "")
    ended = tool("consumer-groups", "--reset-offsets", "--group", group, "--topic", f"{topic}:0,7", "--to-latest")
    assert (ended.returncode, ended.stdout) == (1, f'{begun}The partitions "{topic}-7" do not exist\n')
    assert ended.stderr.startswith(NO_EXECUTION)
    reset = ("--reset-offsets", "--group", group, "--topic", f"{topic}:1", "--shift-by", "1", "--dry-run")
    ended = tool("consumer-groups", *reset)
    told = f"Cannot shift offset for partition {topic}-1 since there is no current committed offset"
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"moldau consumer-groups: {told}\n")


def test_files_that_are_no_plan(tool: Tool, group: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.csv"
    for content, told in (
        (None, f"cannot read {plan}: No such file or directory"),
        (b"\xff", f"cannot read {plan}: it is no text in UTF-8"),
        (b"orders;0;1\n", f"{plan}: row 1 is 'orders;0;1'; expected topic,partition,offset"),
    ):
        if content is not None:
            plan.write_bytes(content)
        ended = tool("consumer-groups", "--reset-offsets", "--group", group, "--from-file", str(plan), "--dry-run")
        assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", f"moldau consumer-groups: {told}\n")


def test_a_plan_that_is_exported_is_read_back(done: Done, group: str, topic: str, tmp_path: Path) -> None:
    reset = ("consumer-groups", "--reset-offsets", "--group", group)
    plan = tmp_path / "plan.csv"
    plan.write_text(done(*reset, "--topic", topic, "--to-latest", "--dry-run", "--export"))
    told = done(*reset, "--from-file", str(plan), "--execute")
    assert [line.split()[1:] for line in told.splitlines()[2:]] == [[topic, "0", "0"], [topic, "1", "0"]]


def test_the_names_of_scripts_and_times_in_milliseconds(done: Done, group: str) -> None:
    assert group in done("kafka-consumer-groups.sh", "--timeout", "10000", "--list").splitlines()
    assert group in done("kafka-groups.sh", "--list")


def test_who_may_not_is_told_so() -> None:
    """Nothing is listed of what one may not see. Apache Kafka's broker does not start if it may do nothing itself."""
    own = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    with moldau.run(overrides=own) as broker:
        bootstrap = broker.bootstrap_servers
        listed = run_tool(bootstrap, "consumer-groups", "--list")
        assert (listed.returncode, listed.stdout, listed.stderr) == (0, "", "")
        ended = run_tool(bootstrap, "consumer-groups", "--describe", "--group", "secret")
        assert ended.returncode == 1
        assert "org.apache.kafka.common.errors.GroupAuthorizationException: " in ended.stdout
        ended = run_tool(bootstrap, "groups", "describe", "secret")
        assert (ended.returncode, ended.stdout) == (1, "")
        assert ended.stderr == "moldau groups: group 'secret': Group authorization failed.\n"
        ended = run_tool(bootstrap, "groups", "reset", "secret", "--topic", "orders", "--to", "latest", "--yes")
        assert ended.stderr == "moldau groups: group 'secret': Group authorization failed.\n"


def test_bytes_that_are_no_text_are_refused(tool: Tool) -> None:
    ended = tool("consumer-groups", "--describe", "--group", os.fsdecode(b"\xff"))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "moldau: argument 4 is no text in UTF-8: b'\\xff'\n"
