"""Mapping rules: a table of cases, and Apache Kafka's own class as the judge of each."""

from __future__ import annotations

import time

import pytest

from moldau.security.tls.principal_mapping import (
    NAME_CHARS_MAX,
    NoMatchingRule,
    parse_mapping_rules,
)
from moldau.security.tls.settings import TlsConfigError
from tests import apache_kafka
from tests.security.tls import judge

ALICE = "CN=Alice,OU=Sales,O=Acme,C=DE"
ANCHORED = r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/"
KAFKA_DOCS = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,"
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L,"
    r"RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,"
    "DEFAULT"
)

# rules, distinguished name, what comes out (None: no rule applies)
CASES: list[tuple[str, str, str | None]] = [
    ("DEFAULT", ALICE, ALICE),
    (" DEFAULT ", ALICE, ALICE),
    ("", ALICE, None),
    (",,DEFAULT", ALICE, ALICE),
    (KAFKA_DOCS, "CN=kafka-client,OU=ServiceUsers,O=Unknown,C=Unknown", "kafka-client"),
    (KAFKA_DOCS, "CN=Admin,OU=Ops,O=Acme,L=Prague,ST=Bohemia,C=CZ", "admin@ops"),
    (KAFKA_DOCS, "OU=x,CN=Bob.B,O=y", "bob.b"),
    (KAFKA_DOCS, "O=nobody", "O=nobody"),
    (ANCHORED, ALICE, None),
    ("RULE:^CN=(.*?),.*$/$1/U", ALICE, "ALICE"),
    ("RULE:^CN=(.*?),.*$/$1/L, DEFAULT", ALICE, "alice"),
    ("RULE:^cn=(.*?),.*$/$1/", ALICE, None),
    ("RULE:(?i)^cn=(.*?),.*$/$1/", ALICE, "Alice"),
    ("RULE:^CN=(.*?),OU=(.*?),O=(.*?),C=(.*?)$/$4-$3-$2-$1/", ALICE, "DE-Acme-Sales-Alice"),
    ("RULE:^CN=(.*?),.*$/$1@$4/", ALICE, "Alice@$4"),
    ("RULE:^CN=(.*?),.*$/$12/", ALICE, "Alice2"),
    ("RULE:^CN=(.*?),.*$/$0/", ALICE, ALICE),
    ("RULE:^CN=(.*?),.*$/user/", ALICE, "user"),
    ("RULE:^CN=(.*?),.*$//", ALICE, ""),
    ("RULE:^CN=(?P<who>.*?),.*$/${who}/", ALICE, "Alice"),
    (r"RULE:^CN=(.*?),.*$/\$1$1/", ALICE, "$1Alice"),
    (r"RULE:^CN=(.*?)\/(.*?),.*$/$1\/$2/", "CN=host/broker,O=Acme", "host/broker"),
    (r"RULE:^CN=(\w+)\,OU=(\w+).*$/$1_$2/", ALICE, "Alice_Sales"),
    ("RULE:.*/x/", ALICE, "xx"),
    ("RULE:CN=(.*?),.*?/$1-/", ALICE, "Alice-OU=Sales,O=Acme,C=DE"),
    ("RULE:[A-Z]+=\\w+(,|)([A-Z]+=\\w+(,|))*/u/", ALICE, "u"),
    (r"RULE:^CN=(.*?),OU=.*$/$1/,RULE:^O=(.*)$/$1/U", "O=Größe", "GRÖSSE"),
    (r"RULE:^CN=(.+)$/$1/L", "CN=ŽLUŤOUČKÝ", "žluťoučký"),
    ("RULE:^CN=(a|b)?(.*)$/$1-$2/", "CN=xy", "-xy"),
]
REFUSED = [
    ("RULE:foo", "neither DEFAULT nor RULE"),
    ("default", "neither DEFAULT nor RULE"),
    ("RULE:^CN=(.*)$/$1/X", "neither DEFAULT nor RULE"),
    ("RULE:a/b/L,nonsense", "neither DEFAULT nor RULE"),
    ("RULE:(/x/", "missing closing )"),
    ("RULE:^CN=.*$/$1/", "no group 1"),
    ("RULE:^CN=(.*)$/$/", "a lone $"),
    ("RULE:^CN=(?=A)(.*)$/$1/", "no regular expression of RE2"),
    ("RULE:" + "a" * 40_000 + "/b/", "longer than"),
]


def outcome(rules: str, name: str) -> str | None:
    try:
        return parse_mapping_rules(rules).name_of(name)
    except NoMatchingRule:
        return None


@pytest.mark.parametrize(("rules", "name", "expected"), CASES)
def test_rules_give_the_name_that_kafka_gives(rules: str, name: str, expected: str | None) -> None:
    assert outcome(rules, name) == expected


@pytest.mark.parametrize(("rules", "why"), REFUSED)
def test_a_rule_that_could_never_be_applied_is_refused_at_once(rules: str, why: str) -> None:
    with pytest.raises(TlsConfigError, match=r"^ssl\.principal\.mapping\.rules: ") as refused:
        parse_mapping_rules(rules)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.skipif(not apache_kafka.available(), reason="needs Java and Apache Kafka's jars")
def test_apache_kafka_agrees_on_every_case() -> None:
    # Python's RE2 spells a named group with a P, Java does not.
    questions = [(rules.replace("(?P<", "(?<").encode(), name.encode()) for rules, name, _ in CASES]
    assert judge.ask("map", questions) == [expected for _, _, expected in CASES]


@pytest.mark.parametrize(
    "rules", ["RULE:^(a+)+b$/$1/", "RULE:((a|aa)+)+/$1/", "RULE:(a*)*/$1/", "RULE:(a.*b)?(.*)/$2/"]
)
def test_no_pattern_takes_long(rules: str) -> None:
    began = time.thread_time()
    outcome(rules, "a" * NAME_CHARS_MAX)
    assert time.thread_time() - began < 1.0


def test_an_endless_name_is_not_let_in() -> None:
    with pytest.raises(NoMatchingRule):
        parse_mapping_rules("DEFAULT").name_of("CN=" + "a" * NAME_CHARS_MAX)
