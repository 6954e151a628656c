"""Settings tried before anybody asks: a client that cannot be made is told of at the start."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaException, Producer

from moldau.rest.librdkafka import quiet
from moldau.rest.making import registry_client
from moldau.rest.producing.producers import USUAL
from moldau.rest.settings import Authentication, RestSettings
from moldau.web.clusters import UnusableSettings, opened

__all__ = ["UnusableSettings", "check_settings"]


def check_settings(settings: RestSettings) -> None:
    """Nothing is connected. Raises UnusableSettings."""
    client = dict(settings.client)
    if settings.authentication is Authentication.PASSTHROUGH:
        client |= {"sasl.username": "nobody", "sasl.password": "nobody"}
    try:
        opened(client, settings.timeout_s).close()
        Producer({**USUAL, **quiet(), **client, **settings.producer})
        Consumer({**quiet(), **client, **settings.consumer, "group.id": "moldau-rest"}).close()
        if settings.registry_url is not None:
            registry_client(settings).close()
    except KafkaException as wrong:
        raise UnusableSettings(wrong.args[0].str()) from None
    except (OSError, ValueError, TypeError) as wrong:
        raise UnusableSettings(str(wrong)) from None
