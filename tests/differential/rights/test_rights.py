"""Every API by every set of ACLs, asked of Apache Kafka 4.3.1 with its StandardAuthorizer and of us.

Neither needs a login: users differ by the address that they come from, which ACLs name (`users.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from moldau.broker.handlers.table import TABLE
from tests import apache_kafka
from tests.apache_kafka import ApacheKafka
from tests.brokers import running_broker
from tests.differential.conftest import (
    PROPERTIES,
    keep_minimum_in_sync_for_the_cluster,
    until_producer_ids_are_there,
)
from tests.differential.differences import Difference, disagreements
from tests.differential.rights.differences import DIFFERENCES
from tests.differential.rights.matrix import Matrix
from tests.differential.rights.questions import NOT_ASKED, QUESTIONS, Question
from tests.differential.rights.users import User, users

# Until there are ACLs everybody may do everything. The first request makes them, for the admin and for the users.
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
SAMPLE = (
    "nobody",
    "everything",
    "topic describe",
    "topics but one",
    "group read",
    "txn write",
    "cluster describe",
    "copier",
)
SHOWN_MAX = 40


class Both(NamedTuple):
    judge: Matrix
    candidate: Matrix
    users: list[User]


@pytest.fixture(scope="module")
def both(broker_kind: str) -> Iterator[Both]:
    if not apache_kafka.available():
        pytest.skip("Apache Kafka needs java, and Maven the first time")
    properties = {**PROPERTIES, **AUTHORIZER}
    everybody = list(users())
    with ApacheKafka(properties=properties) as apache, running_broker(broker_kind, properties=properties) as bootstrap:
        host, _, port = bootstrap.rpartition(":")
        addresses = ("127.0.0.1", apache.port), (host, int(port))
        for address in addresses:
            until_producer_ids_are_there(address)
        if broker_kind == "moldau":
            keep_minimum_in_sync_for_the_cluster(addresses[1])
        judge, candidate = (Matrix(address, everybody) for address in addresses)
        try:
            judge.prepare()
            candidate.prepare()
            yield Both(judge, candidate, everybody)
        finally:
            judge.close()
            candidate.close()


def compare(question: Question, both: Both, names: list[str], rows: tuple[Difference, ...]) -> None:
    theirs = list(both.judge.answers(question, names))
    ours = list(both.candidate.answers(question, names))
    surprises = [one for one in disagreements(theirs, ours) if not any(row.covers(question.name, one) for row in rows)]
    shown = "\n".join(map(str, surprises[:SHOWN_MAX]))
    assert not surprises, f"{len(surprises)} fields differ\n{shown}"


@pytest.mark.xdist_group("differential")
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_some_users_get_the_same_answers(question: Question, both: Both, broker_kind: str) -> None:
    compare(question, both, list(SAMPLE), DIFFERENCES if broker_kind == "moldau" else ())


@pytest.mark.long
@pytest.mark.xdist_group("differential")
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_all_users_get_the_same_answers(question: Question, both: Both, broker_kind: str) -> None:
    names = [user.name for user in both.users]
    compare(question, both, names, DIFFERENCES if broker_kind == "moldau" else ())


def test_there_are_more_than_a_thousand_cases() -> None:
    assert len(QUESTIONS) * len(list(users())) > 1_000
    assert {user.name for user in users()} >= set(SAMPLE)


def test_every_api_that_clients_ask_is_among_them() -> None:
    answered = {row.key.name.replace("_", "").lower() for row in TABLE}
    asked = {question.api.lower() for question in QUESTIONS}
    assert answered - asked == {api.lower() for api in NOT_ASKED}
