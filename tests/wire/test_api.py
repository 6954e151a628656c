from __future__ import annotations

import pytest

from moldau.wire.api import ApiKey
from tests import apache_kafka
from tests.wire.test_messages import definitions, snake


@pytest.mark.skipif(not apache_kafka.available(), reason="needs Java, and Maven for the jars")
def test_the_keys_are_kafkas() -> None:
    requests = [each for each in definitions().values() if each["type"] == "request"]
    expected = {snake(each["name"].removesuffix("Request")).upper(): each["apiKey"] for each in requests}
    assert {key.name: int(key) for key in ApiKey} == expected
