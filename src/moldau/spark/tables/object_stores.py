"""How the libraries of lake tables reach S3: by what Spark, or the environment, says of the same store.

Spark reaches a store through Hadoop's S3A; Delta's and Iceberg's libraries have clients of their own, with other names
for the same settings. Whoever has told Spark, or has the usual variables set where the driver starts, has told enough:
what is found there goes with the table's own options to the executors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

SCHEMES = ("s3", "s3a", "s3n")
HADOOP = "spark.hadoop.fs.s3a."
REGION_DEFAULT = "us-east-1"
# What a table's own option may be about, whatever the library's name for it is.
SUBJECTS = ("endpoint", "region", "access_key", "allow_http")


@dataclass(frozen=True, slots=True)
class StoreAccess:
    """None is the library's own default; credentials are there all together or not at all."""

    endpoint: str | None = None
    region: str | None = None
    access_key: str | None = None
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)

    def for_delta(self) -> dict[str, str]:
        is_plain = self.endpoint is not None and self.endpoint.startswith("http://")
        return _given(
            {
                "aws_endpoint_url": self.endpoint,
                "aws_region": self.region,
                "aws_access_key_id": self.access_key,
                "aws_secret_access_key": self.secret_key,
                "aws_session_token": self.session_token,
                "aws_allow_http": "true" if is_plain else None,
            }
        )

    def for_iceberg(self) -> dict[str, str]:
        return _given(
            {
                "s3.endpoint": self.endpoint,
                "s3.region": self.region,
                "s3.access-key-id": self.access_key,
                "s3.secret-access-key": self.secret_key,
                "s3.session-token": self.session_token,
            }
        )


def is_in_s3(url: str) -> bool:
    return urlsplit(url).scheme in SCHEMES


def access_by_environment(environment: Mapping[str, str]) -> StoreAccess:
    """By the variables that all of Amazon's tools know."""

    def said(*names: str) -> str | None:
        return next((environment[name] for name in names if environment.get(name)), None)

    return StoreAccess(
        endpoint=said("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
        region=said("AWS_REGION", "AWS_DEFAULT_REGION"),
        access_key=said("AWS_ACCESS_KEY_ID"),
        secret_key=said("AWS_SECRET_ACCESS_KEY"),
        session_token=said("AWS_SESSION_TOKEN"),
    )


def access_by_spark(url: str, setting: Callable[[str], str | None]) -> StoreAccess:
    """By the settings of S3A, those of the bucket before those of all; `setting` tells one of Spark's by its name."""
    bucket = urlsplit(url).netloc

    def said(name: str) -> str | None:
        return setting(f"{HADOOP}bucket.{bucket}.{name}") or setting(HADOOP + name)

    endpoint = said("endpoint")
    if endpoint and "://" not in endpoint:
        is_plain = (said("connection.ssl.enabled") or "true").lower() == "false"
        endpoint = f"{'http' if is_plain else 'https'}://{endpoint}"
    return StoreAccess(
        endpoint=endpoint,
        region=said("endpoint.region"),
        access_key=said("access.key"),
        secret_key=said("secret.key"),
        session_token=said("session.token"),
    )


def filled(own: Mapping[str, str], found: Mapping[str, str]) -> dict[str, str]:
    """A table's own options, and what was found about subjects that none of them is about."""
    told = {_subject(name) for name in own}
    return {**{name: value for name, value in found.items() if _subject(name) not in told}, **own}


def with_region(options: Mapping[str, str], name: str) -> dict[str, str]:
    """A store of one's own is in no region, but a request has to name one, and the libraries would look for it."""
    told = {_subject(each) for each in options}
    needs_one = "endpoint" in told and "region" not in told
    return {**options, **({name: REGION_DEFAULT} if needs_one else {})}


def _subject(name: str) -> str:
    """A token is part of the credentials that a key names."""
    plain = name.lower().replace("-", "_").replace("session_token", "access_key")
    return next((word for word in SUBJECTS if word in plain), plain)


def _given(settings: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in settings.items() if value is not None}
