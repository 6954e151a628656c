"""The first users of a cluster: by the words of Apache Kafka's tool, once, and without their passwords anywhere."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ScramMechanism, UserScramCredentialDeletion

from moldau.core.config.definitions import UnreadableInput
from moldau.node.securing.first_users import FILE_BYTES_MAX, parse_credential, read_credentials
from moldau.security.sasl.scram.credential import ScramMechanism as ScramName
from moldau.security.sasl.scram.keys import salted_password
from tests.node.test_command import run_to_its_end, started


def test_the_words_of_kafka_storage() -> None:
    made = parse_credential("SCRAM-SHA-256=[name=admin,password=hush]")
    assert (made.user, made.mechanism, made.iterations) == ("admin", 1, 4096)
    assert int(made.salt, 36) < 1 << 130, "as Kafka's tools make them, and as users are made up who do not exist"
    salt = b64encode(b"salt").decode()
    made = parse_credential(f'SCRAM-SHA-512=[name="a b",iterations=8192,salt="{salt}",password="x=y"]')
    assert (made.user, made.mechanism, made.iterations, made.salt) == ("a b", 2, 8192, b"salt")
    assert made.salted_password == salted_password(made.mechanism, "x=y", b"salt", 8192)  # type: ignore[arg-type]
    salted = b64encode(made.salted_password).decode()
    again = parse_credential(f"SCRAM-SHA-512=[name=a b,iterations=8192,salt={salt},saltedpassword={salted}]")
    assert again == made


@pytest.mark.parametrize(
    "text",
    [
        "hush",
        "PLAIN=[name=a,password=hush]",
        "SCRAM-SHA-256=name=a,password=hush",
        "SCRAM-SHA-256=[password=hush]",
        "SCRAM-SHA-256=[name=a]",
        "SCRAM-SHA-256=[name=a,saltedpassword=hush]",
        "SCRAM-SHA-256=[name=a,password=hush,iterations=4095]",
        "SCRAM-SHA-256=[name=a,password=hush,iterations=16385]",
        "SCRAM-SHA-256=[name=a,password=hush,salt=-hush-]",
        "SCRAM-SHA-256=[name=a,password=hush,hush=1]",
    ],
)
def test_a_wrong_argument_is_told_without_its_password(text: str) -> None:
    with pytest.raises(UnreadableInput, match=r"^Invalid value for --add-scram: ") as told:
        parse_credential(text)
    assert "hush" not in str(told.value)


def test_a_start_with_a_wrong_argument_ends_in_one_line(tmp_path: Path) -> None:
    refused = run_to_its_end("--add-scram", "SCRAM-SHA-1=[name=a,password=hush]", cwd=tmp_path)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "hush" not in refused.stderr
    assert not (tmp_path / "moldau-data").exists()


def test_users_come_from_files_too(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("# who begins\n\nSCRAM-SHA-256=[name=a,password=x y]\r\n  SCRAM-SHA-512=[name=b,password=z]\n")
    found = read_credentials([f"@{users}", "SCRAM-SHA-256=[name=c,password=z]"])
    assert [(each.user, each.mechanism) for each in found] == [("a", 1), ("b", 2), ("c", 1)]
    assert found[0].salted_password == salted_password(ScramName.SHA_256, "x y", found[0].salt, 4096)


@pytest.mark.parametrize("content", [None, b"", b"# nobody\n", b"hush\n", b"\xff\xfe", b"x" * (FILE_BYTES_MAX + 1)])
def test_a_file_without_users_is_told_by_its_name_and_not_by_its_content(tmp_path: Path, content: bytes | None) -> None:
    users = tmp_path / "users"
    if content is not None:
        users.write_bytes(content)
    with pytest.raises(UnreadableInput, match=r"^Invalid value for --add-scram: ") as told:
        read_credentials([f"@{users}"])
    assert "hush" not in str(told.value)
    with pytest.raises(UnreadableInput, match="can't be read"):
        read_credentials(["@"])


def test_the_first_user_comes_by_standard_input(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("SCRAM-SHA-256=[name=admin,password=a secret]")
    words = ["--override", "listeners=SASL_PLAINTEXT://127.0.0.1:0"]
    words += ["--override", "sasl.enabled.mechanisms=SCRAM-SHA-256", "--add-scram", "@-"]
    with users.open("rb") as given, started(*words, cwd=tmp_path, stdin=given) as (process, port):
        who = {"sasl.username": "admin", "sasl.password": "a secret", "sasl.mechanism": "SCRAM-SHA-256", "log_level": 0}
        address = {"bootstrap.servers": f"127.0.0.1:{port}", "security.protocol": "SASL_PLAINTEXT"}
        AdminClient({**address, **who}).list_topics(timeout=20)
        assert b"a secret" not in Path(f"/proc/{process.pid}/cmdline").read_bytes()
    refused = run_to_its_end("--brokers", "2", "--add-scram", "@-", cwd=tmp_path)
    assert (refused.returncode, "name a file" in refused.stderr) == (2, True)


def test_the_first_user_logs_in_and_once_taken_away_stays_away(tmp_path: Path) -> None:
    words = ["--override", "listeners=SASL_PLAINTEXT://127.0.0.1:0"]
    words += ["--override", "sasl.enabled.mechanisms=SCRAM-SHA-256,SCRAM-SHA-512"]
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        words += ["--add-scram", f"{mechanism}=[name=admin,password=a secret]"]

    def client(port: int, mechanism: str) -> AdminClient:
        who = {"sasl.username": "admin", "sasl.password": "a secret", "sasl.mechanism": mechanism, "log_level": 0}
        return AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", "security.protocol": "SASL_PLAINTEXT", **who})

    with started(*words, cwd=tmp_path) as (_, port):
        admin = client(port, "SCRAM-SHA-256")
        assert list(admin.describe_user_scram_credentials().result(20)) == ["admin"]
        deletion = UserScramCredentialDeletion("admin", ScramMechanism.SCRAM_SHA_256)
        admin.alter_user_scram_credentials([deletion])["admin"].result(20)
    with started(*words, cwd=tmp_path) as (_, port):
        client(port, "SCRAM-SHA-512").list_topics(timeout=20)
        with pytest.raises(KafkaException):
            client(port, "SCRAM-SHA-256").list_topics(timeout=1.5)
