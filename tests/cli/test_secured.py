"""The tools over TLS with a login: by librdkafka's settings, and by a client.properties of Java's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import run_tool
from tests.node.securing.secured import PASSWORDS, Secured, bearer, running_secured
from tests.security.sasl.issuing import CLIENT, SECRET, running_issuer

TOOLS = [("topics", "list"), ("users", "list"), ("quotas", "list")]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with running_secured(tmp_path_factory.mktemp("keys")) as running:
        yield running


def java_file(secured: Secured, path: Path, *, password: str = PASSWORDS["alice"]) -> str:
    path.write_text(
        f"""\
bootstrap.servers={secured.address("SASL_SSL")}
security.protocol=SASL_SSL
ssl.truststore.type=PEM
ssl.truststore.location={secured.keys.trusted}
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
  username="alice" password="{password}";
"""
    )
    return str(path)


@pytest.mark.parametrize("words", TOOLS, ids=lambda words: words[0])
def test_a_file_of_javas_is_enough(words: tuple[str, ...], secured: Secured, tmp_path: Path) -> None:
    file = java_file(secured, tmp_path / "client.properties")
    ended = run_tool("127.0.0.1:1", *words, "--command-config", file)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_what_is_typed_wins_over_the_file(secured: Secured, tmp_path: Path) -> None:
    file = java_file(secured, tmp_path / "client.properties")
    ended = run_tool("", "quotas", "list", "--bootstrap-server", "127.0.0.1:1", "--command-config", file)
    assert ended.stderr == "moldau quotas: no broker answers at 127.0.0.1:1; start one with: moldau start\n"


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_settings_of_librdkafka(protocol: str, mechanism: str, secured: Secured) -> None:
    settings = secured.logged_in(protocol, mechanism, "alice")
    del settings["log_level"], settings["bootstrap.servers"]
    given = [word for key, value in settings.items() for word in ("-X", f"{key}={value}")]
    ended = run_tool(secured.address(protocol), "quotas", "list", *given)
    assert (ended.returncode, ended.stderr) == (0, "")


JAVAS_OAUTH = """\
security.protocol=SASL_SSL
ssl.truststore.type=PEM
ssl.truststore.location={trusted}
sasl.mechanism=OAUTHBEARER
sasl.login.callback.handler.class=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler
sasl.oauthbearer.token.endpoint.url={url}
sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required {options};
"""


def test_a_token_in_a_file_is_enough(secured: Secured, tmp_path: Path) -> None:
    token, file = tmp_path / "token.jwt", tmp_path / "client.properties"
    token.write_text(bearer("alice")[0])
    file.write_text(JAVAS_OAUTH.format(trusted=secured.keys.trusted, url=token.as_uri(), options=""))
    words = ("quotas", "list", "--command-config", str(file))
    ended = run_tool(secured.address("SASL_SSL"), *words)
    assert (ended.returncode, ended.stderr) == (0, "")
    token.unlink()
    ended = run_tool(secured.address("SASL_SSL"), *words)
    assert "SASL OAUTHBEARER: the token can't be had: No such file" in ended.stderr
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)


def test_tokens_come_from_an_issuer(secured: Secured, tmp_path: Path) -> None:
    """Also those of librdkafka, by the same file of Java's."""
    file, keys, words = tmp_path / "client.properties", secured.keys, ("quotas", "list")
    options = f'clientId="{CLIENT}" clientSecret="{SECRET}"'
    with running_issuer(keys.broker, lambda: bearer("alice")[0]) as issuer:
        file.write_text(JAVAS_OAUTH.format(trusted=keys.trusted, url=issuer.url, options=options))
        given = ("--command-config", str(file), "-X", f"https.ca.location={keys.trusted}")
        for tool in (words, ("topics", "create", "by-token"), ("produce", "by-token")):
            ended = run_tool(secured.address("SASL_SSL"), *tool, *given, stdin="hello\n")
            assert (ended.returncode, ended.stderr) == (0, ""), tool
        issuer.answer = lambda: (503, b"")
        ended = run_tool(secured.address("SASL_SSL"), *words, *given)
        assert f"the token can't be had: {issuer.url}: it answers 503" in ended.stderr


@pytest.mark.parametrize(
    "words", [("users", "list"), ("produce", "orders", "--timeout", "1")], ids=["ours", "librdkafka"]
)
def test_a_wrong_password_is_said_in_the_brokers_words(
    words: tuple[str, ...], secured: Secured, tmp_path: Path
) -> None:
    file = java_file(secured, tmp_path / "client.properties", password="wrong secret")
    ended = run_tool("", *words, "--command-config", file)
    assert ended.returncode == 1
    assert "SASL SCRAM-SHA-512: Authentication failed" in ended.stderr
    assert "wrong secret" not in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "words", [("topics", "list"), ("produce", "orders", "--timeout", "1")], ids=["ours", "librdkafka"]
)
def test_who_begins_without_tls_is_told_to(words: tuple[str, ...], secured: Secured) -> None:
    ended = run_tool(secured.address("SASL_SSL"), *words)
    assert ended.returncode == 1
    assert ended.stderr.endswith("it hung up; is it a Kafka broker, and does security.protocol fit it?\n")


def test_a_file_that_is_not_there_is_named(secured: Secured) -> None:
    words = ("-X", "security.protocol=ssl", "-X", "ssl.ca.location=/nowhere/ca.pem")
    ended = run_tool(secured.address("SSL"), "topics", "list", *words)
    assert ended.returncode == 2
    assert ended.stderr == "moldau topics: client configuration: ssl.ca.location: there is no file /nowhere/ca.pem\n"


def test_a_certificate_that_nobody_trusts_is_said(secured: Secured) -> None:
    ended = run_tool(secured.address("SSL"), "quotas", "list", "-X", "security.protocol=ssl")
    assert ended.returncode == 1
    assert "TLS: the certificate of 127.0.0.1 is not accepted" in ended.stderr


def test_a_slip_of_the_pen_does_not_turn_the_check_of_names_off(secured: Secured) -> None:
    """Anybody with a certificate of the same authority could be the broker then."""
    words = ("-X", "security.protocol=ssl", "-X", f"ssl.ca.location={secured.keys.trusted}")
    ended = run_tool(
        secured.address("SSL"), "quotas", "list", *words, "-X", "ssl.endpoint.identification.algorithm=HTPS"
    )
    assert (ended.returncode, ended.stderr) == (
        2,
        "moldau quotas: ssl.endpoint.identification.algorithm=htps: expected https or none\n",
    )
