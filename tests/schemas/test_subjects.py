"""Names of subjects, as Confluent's strategies give them."""

from __future__ import annotations

import pytest

from moldau.schemas.model import InvalidValue
from moldau.schemas.subjects import QualifiedSubject, ReferenceSubjectNameStrategy, SubjectNameStrategy


@pytest.mark.parametrize(
    ("strategy", "is_key", "subject"),
    [
        (SubjectNameStrategy.TOPIC_NAME, True, "orders-key"),
        (SubjectNameStrategy.TOPIC_NAME, False, "orders-value"),
        (SubjectNameStrategy.RECORD_NAME, False, "shop.Order"),
        (SubjectNameStrategy.TOPIC_RECORD_NAME, True, "orders-shop.Order"),
    ],
)
def test_subjects_are_named_by_topic_and_record(strategy: SubjectNameStrategy, is_key: bool, subject: str) -> None:
    assert strategy.subject("orders", is_key, "shop.Order") == subject


def test_a_schema_without_a_name_has_a_subject_by_its_topic_only() -> None:
    assert SubjectNameStrategy.TOPIC_NAME.subject("orders", False, None) == "orders-value"
    with pytest.raises(InvalidValue, match="schema of the value is none"):
        SubjectNameStrategy.RECORD_NAME.subject("orders", False, None)


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        ("io.confluent.kafka.serializers.subject.TopicNameStrategy", SubjectNameStrategy.TOPIC_NAME),
        ("RecordNameStrategy", SubjectNameStrategy.RECORD_NAME),
        ("TOPIC_RECORD", SubjectNameStrategy.TOPIC_RECORD_NAME),
        ("topic", SubjectNameStrategy.TOPIC_NAME),
        ("topic_record_name", SubjectNameStrategy.TOPIC_RECORD_NAME),
        ("RecordName", SubjectNameStrategy.RECORD_NAME),
    ],
)
def test_strategies_are_known_by_each_clients_name(name: str, strategy: SubjectNameStrategy) -> None:
    assert SubjectNameStrategy.named(name) is strategy


def test_an_unknown_strategy_is_told_with_those_that_are_known() -> None:
    with pytest.raises(ValueError, match="'AssociatedNameStrategy'; known are: TopicNameStrategy, "):
        SubjectNameStrategy.named("AssociatedNameStrategy")
    with pytest.raises(ValueError, match="known are: Default"):
        ReferenceSubjectNameStrategy.named("other")


def test_a_references_subject_is_its_name_or_its_path_with_dots() -> None:
    qualified = ReferenceSubjectNameStrategy.named("qualified")
    default = ReferenceSubjectNameStrategy.named(
        "io.confluent.kafka.serializers.subject.DefaultReferenceSubjectNameStrategy"
    )
    assert default.subject("shop/v1/order.proto") == "shop/v1/order.proto"
    assert qualified.subject("shop/v1/order.proto") == "shop.v1.order"


@pytest.mark.parametrize(
    ("name", "context", "subject"),
    [
        ("orders-value", ".", "orders-value"),
        (":.staging:orders-value", ".staging", "orders-value"),
        (":.staging:", ".staging", ""),
        (":.staging:a:b", ".staging", "a:b"),
        (":*:orders", "*", "orders"),
        (":odd", ".", ":odd"),
        ("", ".", ""),
    ],
)
def test_a_subject_is_qualified_by_its_context(name: str, context: str, subject: str) -> None:
    assert QualifiedSubject.parse(name) == QualifiedSubject(context, subject)
    assert str(QualifiedSubject.parse(name)) == name


def test_the_default_context_is_not_written() -> None:
    assert str(QualifiedSubject.parse(":.:orders")) == "orders"
    assert str(QualifiedSubject.parse(":.staging")) == ":.staging:"
