"""From principals to users: a table of cases, thousands that are made up, and Apache Kafka's class as the judge."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.security.sasl.kerberos.short_names import (
    PRINCIPAL_CHARS_MAX,
    InvalidRule,
    NoShortName,
    ShortNamer,
    parse_rules,
)
from tests import apache_kafka
from tests.clients.toolchains import built, compile_java, java_command, sources

REALM = "EXAMPLE.COM"
SOURCE = Path(__file__).parent / "java"
JUDGE_S_MAX = 120.0
MADE_UP = 4_000
SEED = 20

# rules, principal, what comes out (None: nobody is let in)
CASES: list[tuple[tuple[str, ...], str, str | None]] = [
    (("DEFAULT",), "alice@EXAMPLE.COM", "alice"),
    (("DEFAULT",), "kafka/b1.example.com@EXAMPLE.COM", "kafka"),
    (("DEFAULT",), "alice@ELSEWHERE.COM", None),
    (("DEFAULT",), "alice", "alice"),
    (("DEFAULT",), "a/b/c@EXAMPLE.COM", None),
    (("DEFAULT",), "alice@EXAMPLE.COM@X", None),
    (("DEFAULT",), "@EXAMPLE.COM", ""),
    ((), "alice@EXAMPLE.COM", None),
    (("RULE:[1:$1]",), "alice@ANY", "alice"),
    (("RULE:[1:$1]",), "alice/admin@ANY", None),
    (("RULE:[1:$1]", "RULE:[2:$1]"), "alice/admin@ANY", "alice"),
    (("RULE:[2:$1-$2]",), "alice/admin@ANY", "alice-admin"),
    (("RULE:[1:$1.$0]",), "alice@ANY", "alice.ANY"),
    (("RULE:[1:$1@$0]",), "alice@ANY", None),
    (("RULE:[1:$1@$0](.*@ANY)s/@.*//",), "alice@ANY", "alice"),
    (("RULE:[1:$1@$0](.*@ANY)s/@.*//",), "alice@ANY.MORE", None),
    (("RULE:[1:$1@$0](.*@OTHER)s/@.*//", "DEFAULT"), "alice@EXAMPLE.COM", "alice"),
    (("RULE:[2:$1@$0](kafka@.*EXAMPLE.COM)s/.*/broker/",), "kafka/h@EXAMPLE.COM", "broker"),
    (("RULE:[2:$1@$0](kafka@.*EXAMPLE.COM)s/.*/broker/g",), "kafka/h@EXAMPLE.COM", "brokerbroker"),
    (("RULE:[1:$1]s/a/b/",), "banana@X", "bbnana"),
    (("RULE:[1:$1]s/a/b/g",), "banana@X", "bbnbnb"),
    (("RULE:[1:$1]s/^(.)(.*)$/$2$1/",), "alice@X", "licea"),
    (("RULE:[1:$1]s/(.)/$12/",), "alice@X", "a2lice"),
    (("RULE:[1:$1]s/(.)/\\$1/",), "alice@X", "$1lice"),
    (("RULE:[1:$1]/L",), "ALICE@X", "alice"),
    (("RULE:[1:$1]L",), "ALICE@X", "alice"),
    (("RULE:[1:$1]/U",), "alice@X", "ALICE"),
    (("RULE:[1:$1](A.*)s/A/b//L",), "ALICE@X", "blice"),
    (("RULE:[1:$1](A.*)s/A/b/g/L",), "ALICE@X", "blice"),
    (("RULE:[1:$1](A.*)s/A/b/gL",), "ALICE@X", "blice"),
    (("RULE:[1:$1]s/x/y/", "DEFAULT"), "alice@X", "alice"),
    (("RULE:[1:$1]s/.*//",), "alice@X", ""),
    (("RULE:[1:$1]()",), "alice@X", None),
    (("RULE:[1:]",), "alice@X", ""),
    (("RULE:[1:user]",), "alice@X", "user"),
    (("RULE:[0:x]", "RULE:[3:x]", "RULE:[1:$1]"), "alice@X", "alice"),
    (("RULE:[2:$2]",), "HTTP/web@X", "web"),
    (("RULE:[1:$1](žof.*)s/ž/z/",), "žofie@X", "zofie"),
    (("RULE:[1:$1]/U",), "straße@X", "STRASSE"),
    (("RULE:[1:$1$$1]",), "alice@X", None),
    (("RULE:[1:$2]",), "alice@X", None),
    (("RULE:[1:$1]s/a/$1/",), "alice@X", None),
    (("default",), "alice@EXAMPLE.COM", None),
    (("DEFAULT/L",), "alice@EXAMPLE.COM", None),
    (("RULE:[1:$1]/l",), "alice@X", None),
    (("RULE:[1:$1]/LU",), "alice@X", None),
    (("RULE:[1:$1/L",), "alice@X", None),
    (("rule:[1:$1]",), "alice@X", None),
    (("RULE:[:$1]",), "alice@X", None),
    (("RULE:[2:$1](ABC.*)s/ABC/XYZ/L/g",), "ABC/h@X", None),
    (("RULE:[1:$1](()s/a/b/",), "alice@X", None),
]
REFUSED = [
    ("default", "neither DEFAULT nor RULE"),
    ("DEFAULT/L", "neither DEFAULT nor RULE"),
    ("RULE:[1:$1]/LU", "neither DEFAULT nor RULE"),
    ("RULE:[:$1]", "no number of components"),
    ("RULE:[99999999999999999999:$1]", "no number of components"),
    ("RULE:[1:$2]", "allowed are $0 to $1"),
    ("RULE:[1:$]", "allowed are $0 to $1"),
    ("RULE:[1:$" + "9" * 5_000 + "]", "allowed are $0 to $1"),
    ("RULE:[1:$1]([)", "no regular expression of RE2"),
    ("RULE:[1:$1]s/(?=a)/b/", "no regular expression of RE2"),
    ("RULE:[1:$1]s/a/$1/", "has no group 1"),
    ("RULE:[1:$1]s/a/$/", "a lone $"),
]


def outcome(rules: Sequence[str], principal: str) -> str | None:
    try:
        return ShortNamer(parse_rules(rules), REALM).name_of(principal)
    except (InvalidRule, NoShortName):
        return None


def kafkas(questions: Sequence[tuple[Sequence[str], str]]) -> list[str | None]:
    def build(target: Path) -> None:
        compile_java(SOURCE / "Namer.java", libs=apache_kafka.libs(), classes=target / "classes")

    classes = built("java-kerberos", sources(SOURCE), build) / "classes"
    parts = [[REALM, principal, *rules] for rules, principal in questions]
    lines = "".join(" ".join(part.encode().hex() for part in each) + "\n" for each in parts)
    command = java_command(apache_kafka.libs(), classes, "Namer")
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=JUDGE_S_MAX, check=False)
    assert done.returncode == 0, done.stderr
    return [None if line == "none" else bytes.fromhex(line[1:]).decode() for line in done.stdout.splitlines()]


@pytest.mark.parametrize(("rules", "principal", "expected"), CASES)
def test_rules_give_the_name_that_kafka_gives(rules: tuple[str, ...], principal: str, expected: str | None) -> None:
    assert outcome(rules, principal) == expected


@pytest.mark.parametrize(("rule", "why"), REFUSED)
def test_a_rule_that_could_never_be_applied_is_refused_at_once(rule: str, why: str) -> None:
    with pytest.raises(InvalidRule) as refused:
        parse_rules([rule])
    assert why in str(refused.value)


@pytest.mark.skipif(not apache_kafka.available(), reason="needs Java and Apache Kafka's jars")
def test_apache_kafka_agrees_on_every_case_and_on_thousands_that_are_made_up() -> None:
    made = made_up(random.Random(SEED))
    questions = [(rules, principal) for rules, principal, _ in CASES] + made
    answers = kafkas(questions)
    assert len(answers) == len(questions)
    different = [
        (question, answer, ours)
        for question, answer in zip(questions, answers, strict=True)
        if (ours := outcome(*question)) != answer
    ]
    assert different == []
    assert 0.2 < sum(answer is not None for answer in answers) / len(answers) < 0.8, "both outcomes are common"


def made_up(chance: random.Random) -> list[tuple[list[str], str]]:
    """Rules of pieces that fit together mostly, and principals that they are about."""
    formats = ["$1", "$1@$0", "$0", "$1-x", "x$1$1", "", "$1;$0"]
    patterns = ["", "(.*)", "([a-z]+)", "(a.*@EXAMPLE.COM)", "(A|B.*)", "()", "(.*@X)", "([^@]*)", "(a.b)"]
    changes = ["", "s/@.*//", "s/a/b/", "s/a/b/g", "s/(.)/$1$1/g", "s/.*/u/g", "s/[@].*/-$0/", "s/b*/-/g", "s/$/!/g"]
    endings = ["", "/", "/L", "/U", "L", "U", "/LU", "/g", " "]
    weights = [6, 2, 3, 3, 1, 1, 1, 1, 1]
    firsts = ["alice", "ALICE", "a", "aab", "b", "", "App.x", "a b", "ä"]
    found = []
    for _ in range(MADE_UP):
        rules = []
        for _ in range(chance.randint(1, 3)):
            kind = chance.choices(endings, weights)[0]
            components = chance.choice([1, 1, 2])
            shape = chance.choice([*formats, "$2$1"]) if components == 2 else chance.choice(formats)
            rule = f"RULE:[{components}:{shape}]{chance.choice(patterns)}{chance.choice(changes)}{kind}"
            rules.append(chance.choice([rule, rule, rule, "DEFAULT"]))
        second = chance.choice(["", "", "/host", "/", "/h/i"])
        principal = chance.choice(firsts) + second + chance.choice(["@EXAMPLE.COM", "@X", "@", ""])
        found.append((rules, principal))
    return found


def test_what_is_escaped_in_a_principal_is_no_end_of_a_component() -> None:
    """The library's spelling of one component `kafka/b1`, which is another principal than kafka/b1."""
    for principal in (r"kafka\/b1@EXAMPLE.COM", r"alice\@EXAMPLE.COM@ELSEWHERE", "back\\\\slash@EXAMPLE.COM"):
        with pytest.raises(NoShortName, match="malformed"):
            ShortNamer(parse_rules(["DEFAULT", "RULE:[1:$1]", "RULE:[2:$1]"]), REALM).name_of(principal)


def test_without_a_default_realm_nobody_is_of_it() -> None:
    assert ShortNamer(parse_rules(["DEFAULT"]), "").name_of("alice@") == "alice"
    with pytest.raises(NoShortName):
        ShortNamer(parse_rules(["DEFAULT"]), "").name_of("alice@EXAMPLE.COM")


@pytest.mark.parametrize("rule", ["RULE:[1:$1](^(a+)+b$)", "RULE:[1:$1]s/((a|aa)+)+/$1/g", "RULE:[1:$1](a*)*s/a/bb/g"])
def test_no_pattern_takes_long(rule: str) -> None:
    began = time.thread_time()
    outcome([rule], "a" * (PRINCIPAL_CHARS_MAX - 2) + "@X")
    assert time.thread_time() - began < 1.0


def test_an_endless_principal_is_not_let_in() -> None:
    with pytest.raises(NoShortName, match="characters"):
        ShortNamer(parse_rules(["DEFAULT"]), REALM).name_of("a" * PRINCIPAL_CHARS_MAX + "@" + REALM)


@given(
    st.lists(st.text(alphabet="RULE:[]()s/$01gLU.*+@ \\aD", max_size=30).map(lambda text: "RULE:[1:" + text)), st.text()
)
def test_nothing_but_the_declared_errors_comes_out(rules: list[str], principal: str) -> None:
    found = outcome(rules, principal)
    assert found is None or "@" not in found
