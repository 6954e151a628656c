from __future__ import annotations

import pytest

from moldau.groups.consumer.regexes import InvalidPattern, compile_pattern


def test_a_subscription_matches_whole_names() -> None:
    assert compile_pattern("orders-.*").matches("orders-eu")
    assert not compile_pattern("orders-.*").matches("my-orders-eu")


def test_the_client_reads_what_is_wrong() -> None:
    with pytest.raises(InvalidPattern) as refused:
        compile_pattern("(orders")
    message = "SubscribedTopicRegex `(orders` is not a valid regular expression: missing closing )."
    assert str(refused.value) == message
