"""Values of sasl.jaas.config as people write them, and errors that give no password away."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.security.jaas import (
    MODULES,
    InvalidJaasConfig,
    JaasPasswords,
    LoginModule,
    jaas_config_key,
    login_module,
    parse_jaas_config,
)

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"


def test_a_brokers_users_of_plain() -> None:
    own = 'username="admin" password="admin-secret"'
    module = login_module(f'{PLAIN} required\n {own}\n  user_admin="admin-secret" user_alice=alice;', "PLAIN")
    assert (module.username, module.password) == ("admin", "admin-secret")
    assert module.users == {"admin": "admin-secret", "alice": "alice"}
    assert JaasPasswords(module).lookup("alice") == "alice"
    assert JaasPasswords(module).lookup("bob") is None


def test_the_other_modules() -> None:
    assert login_module(f"{SCRAM} required;", "SCRAM-SHA-512") == LoginModule(SCRAM, "required", {})
    token = login_module(f'{SCRAM} required username="id" password="hmac==" tokenauth="true";', "SCRAM-SHA-256")
    assert (token.username, token.password, token.is_token_auth) == ("id", "hmac==", True)
    assert (
        login_module(f'{OAUTH} Sufficient clientId="c" clientSecret="s";', "OAUTHBEARER").control_flag == "sufficient"
    )
    kerberos = login_module(
        f"""{KERBEROS} required // the broker's own
            useKeyTab=true /* and its
            file */ keyTab='/etc/kafka.keytab' principal="kafka/broker.example.com@EXAMPLE.COM";""",
        "GSSAPI",
    )
    assert kerberos.options == {
        "useKeyTab": "true",
        "keyTab": "/etc/kafka.keytab",
        "principal": "kafka/broker.example.com@EXAMPLE.COM",
    }


def test_escapes_are_javas() -> None:
    module = login_module(rf"""{SCRAM} required password="a\"b\\c\n\101\08'=;//" username='"';""", "SCRAM-SHA-256")
    assert (module.password, module.username) == ("a\"b\\c\nA\x008'=;//", '"')


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("", "Login module not specified"),
        ("// nothing", "Login module not specified"),
        (f"{PLAIN}", "control flag not specified"),
        (f"{PLAIN};", "control flag not specified"),
        (f"{PLAIN} needed;", "Invalid login module control flag at character 57 .* optional, required"),
        (f"{PLAIN} required", "not terminated by semi-colon"),
        (f"{PLAIN} required username", "Value not specified for key 'username'"),
        (f"{PLAIN} required username=;", "Value not specified for key 'username'"),
        (f"{PLAIN} required =x;", "not terminated by semi-colon"),
        (f'{PLAIN} required password="x', "a quote that is not closed at character 75"),
        (f"{PLAIN} required password=p@ss;", "an unexpected character at character 76"),
        (
            "com.sun.security.auth.module.JndiLoginModule required;",
            "unknown login module at character 1; expected one of",
        ),
        (f"{SCRAM} required;", "is not for mechanism PLAIN; expected .*PlainLoginModule"),
        (f"{PLAIN} required; {PLAIN} required;", "contains 2 login modules, should be 1 module"),
        ("x" * 2_000_000, "2000000 characters"),
    ],
)
def test_errors_name_what_is_wrong(value: str, message: str) -> None:
    with pytest.raises(InvalidJaasConfig, match=message):
        login_module(value, "PLAIN")


def test_a_mechanism_without_a_module() -> None:
    with pytest.raises(InvalidJaasConfig, match="no login module for mechanism CRAM-MD5"):
        login_module(f"{PLAIN} required;", "CRAM-MD5")


@pytest.mark.parametrize("left_out", range(6))
def test_errors_and_representations_show_no_password(left_out: int) -> None:
    """Whichever quote or sign somebody forgets."""
    pieces = [f"{PLAIN} required password=", '"', "hunter2", ' s3cret"', " user_bob", '="pa55"', ";"]
    value = "".join(piece for number, piece in enumerate(pieces) if number != left_out + 1 or piece == "hunter2")
    try:
        shown = repr(parse_jaas_config(value))
    except InvalidJaasConfig as wrong:
        shown = str(wrong)
    assert not [secret for secret in ("hunter2", "s3cret", "pa55") if secret in shown]


def test_the_key_of_a_listener() -> None:
    assert jaas_config_key("EXTERNAL", "SCRAM-SHA-256") == "listener.name.external.scram-sha-256.sasl.jaas.config"


options = st.dictionaries(st.from_regex(r"[A-Za-z_]\w{0,8}", fullmatch=True), st.text(max_size=12), max_size=4)


@given(name=st.sampled_from(sorted(set(MODULES.values()))), options=options)
def test_what_is_quoted_is_read_back(name: str, options: dict[str, str]) -> None:
    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'

    value = f"{name} required " + " ".join(f"{key}={quoted(text)}" for key, text in options.items()) + ";"
    assert parse_jaas_config(value) == [LoginModule(name, "required", options)]


@given(
    st.lists(
        st.sampled_from([PLAIN, "required", "a", "=", ";", '"', "'", "\\", "/*", "*/", "//", "\n", " ", "ž", "\0"])
    )
)
def test_any_text_is_read_or_refused(pieces: list[str]) -> None:
    with suppress(InvalidJaasConfig):
        parse_jaas_config(" ".join(pieces[:3]) + "".join(pieces[3:]))
