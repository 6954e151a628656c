"""What is wrong with a command line is one line, and nothing has happened."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.cli.main import main

NOWHERE = "localhost:1"
DEPRECATED = " `metadata` flag is deprecated and may be removed in a future release.\n"
WRONG = [
    ("reassign-partitions --list --verify", "Command must include exactly one action: --generate, --execute,"),
    ("reassign-partitions --verify", 'Missing required argument "[reassignment-json-file]"'),
    ("reassign-partitions --list --throttle 5", 'Option "[throttle]" can\'t be used with action "[list]"'),
    ("reassign-partitions --execute --reassignment-json-file none.json", "cannot read none.json: No such file"),
    ("reassign-partitions --generate --topics-to-move-json-file x --broker-list 1,a", "expected broker ids such as"),
    ("reassign-partitions --list --trottle 5", "unknown option --trottle; did you mean --throttle?"),
    ("leader-election --election-type preferred", "One and only one of the following options is required: topic,"),
    ("leader-election --election-type prefered --all-topic-partitions", "did you mean PREFERRED?"),
    ("leader-election --election-type unclean --topic a", "Missing required option(s): partition"),
    ("leader-election --election-type unclean --all-topic-partitions --partition 1", "only allowed if topic is used"),
    ("leader-election --election-type unclean --path-to-json-file none.json", "cannot read none.json"),
    ("log-dirs --broker-list 1", "the following arguments are required: --describe"),
    ("log-dirs --describe --broker-list one", "expected broker ids such as 1,2,3"),
    ("cluster", "the following arguments are required: ACTION"),
    ("cluster cluster-ids", "did you mean cluster-id?"),
    ("cluster unregister", "the following arguments are required: -i/--id"),
    ("cluster list-endpoints --bootstrap-controller a:1 --include-fenced-brokers", "only supported with"),
    ("features upgrade", "You must specify at least one feature to upgrade"),
    ("features upgrade --feature group.version", "equals sign not found"),
    ("features upgrade --feature group.version=x", "unable to parse x as a short"),
    ("features upgrade --metadata 1.0", "Unknown metadata.version '1.0'. Supported metadata.version are: 3.3-IV3,"),
    ("features upgrade --release-version 4.2 --feature a=1", "Can not specify `release-version` with other feature"),
    ("features downgrade --feature a=1 --feature a=2", "Feature a was specified more than once"),
    ("features feature-dependencies --feature nonsense=1", "Unknown feature: nonsense"),
    ("features feature-dependencies --feature group.version=7", "No feature:group.version with feature level 7"),
    ("metadata-quorum describe", "One of --status or --replication must be specified"),
    ("metadata-quorum describe --status --replication", "Only one of --status or --replication should be specified"),
    ("metadata-quorum describe --status --human-readable", "only supported along with --replication"),
    ("transactions abort --topic a --partition 0", "must be identified either with --start-offset"),
    ("transactions find-hanging --partition 0", "requires either --topic or --broker-id"),
    ("transactions list --duration-filtre 5", "did you mean --duration-filter?"),
    ("acls --list --add", "Command must include exactly one action: --list, --add, --remove"),
    ("acls --list --producer", 'Option "[list]" can\'t be used with option "[producer]"'),
    ("acls --remove --topic a", "nobody can be asked whether to remove ACLs; say --force"),
    ("acls --add --topic a --resource-pattern-type prefix", "did you mean prefixed?"),
    ("delegation-tokens --create --describe", "exactly one action: --create, --renew, --expire or --describe"),
    ("delegation-tokens --create", 'Missing required argument "[max-life-time-period]"'),
    ("delegation-tokens --renew --renew-time-period -1 --hmac §", "--hmac: expected what --create printed, in Base64"),
    ("delegation-tokens --describe --owner-principal alice", "format principalType:principalName but got alice"),
    ("replica-verification --topics-include (", "( is an invalid regex"),
    ("shell-scripts", "the following arguments are required: DIR"),
]
ASKING = [
    "reassign-partitions --list",
    "leader-election --election-type preferred --all-topic-partitions",
    "log-dirs --describe",
    "broker-api-versions",
    "cluster cluster-id",
    "features describe",
    "metadata-quorum describe --status",
    "transactions list",
    "acls --list",
    "delegation-tokens --describe",
    "replica-verification",
]


@pytest.mark.parametrize(("line", "told"), WRONG, ids=lambda text: text[:50])
def test_a_wrong_command_line(line: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    where = [] if line in ("shell-scripts", "cluster") else ["--bootstrap-server", NOWHERE]
    assert main([*line.split(), *where]) == 2
    out, err = capsys.readouterr()
    assert told in err
    assert err.count("\n") == 1
    assert out in ("", DEPRECATED)
    assert err.startswith(f"moldau {line.split(maxsplit=1)[0]}: ")


@pytest.mark.parametrize("line", ASKING)
def test_nobody_listens(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*line.split(), "--bootstrap-server", NOWHERE]) == 1
    told = f"moldau {line.split(maxsplit=1)[0]}: no broker answers at {NOWHERE}; start one with: moldau start\n"
    out, err = capsys.readouterr()
    assert (out.removeprefix("Calling describe token operation for current user.\n"), err) == ("", told)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"\xff", "is no valid JSON"),
        (b"[]", "expected a JSON object"),
        (b'{"version": 2}', "Not supported version field value 2"),
        (b'{"partitions": 3}', "partitions: expected a list of objects"),
        (b'{"partitions": [{"topic": "a", "partition": "0", "replicas": [1]}]}', "partition: expected a whole number"),
        (b'{"partitions": [{"topic": "a", "partition": 0, "replicas": 1}]}', "replicas: expected a list"),
    ],
)
def test_a_file_that_is_no_plan(text: bytes, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(text)
    words = ["reassign-partitions", "--execute", "--reassignment-json-file", str(path), "--bootstrap-server", NOWHERE]
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert told in err
    assert (out, err.count("\n")) == ("", 1)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"\xff", "is no valid JSON"),
        (b"{}", 'Replica election data is missing "partitions" field'),
        (b'{"partitions": [{"topic": "a"}]}', "expected a topic and a partition"),
        (b'{"partitions": [{"topic": "a", "partition": 0}, {"topic": "a", "partition": 0}]}', "partitions: [a-0]"),
    ],
)
def test_a_file_that_names_no_partitions(
    text: bytes, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "some.json"
    path.write_bytes(text)
    assert main(["leader-election", "--election-type", "preferred", "--path-to-json-file", str(path)]) == 2
    out, err = capsys.readouterr()
    assert told in err
    assert (out, err.count("\n")) == ("", 1)
