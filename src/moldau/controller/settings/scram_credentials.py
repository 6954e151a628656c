"""SCRAM credentials of users: set and taken away by the controller, looked up by every broker from its image."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from moldau.controller.image import ClusterImage, Draft
from moldau.controller.records import ScramCredentialRemoved, ScramCredentialSet
from moldau.core.decision import Decision
from moldau.core.errors import ErrorCode
from moldau.core.limits import SCRAM_SALT_BYTES_MAX
from moldau.security.sasl.scram.credential import ITERATIONS_MAX, ITERATIONS_MIN, ScramCredential, ScramMechanism

if TYPE_CHECKING:
    from moldau.security.sasl.scram.keys import FakeCredentials

NOBODY = ""
"""Whose credential is the cluster's secret for made-up ones. No request can name this user, and none logs in as it."""
SECRET_BYTES = 32
ALTERED_TWICE = "A user credential cannot be altered twice in the same request"


class CredentialDeletion(NamedTuple):
    user: str
    mechanism: int


@dataclass(frozen=True, slots=True, repr=False)
class CredentialUpsertion:
    """A password as the client salted it. Without a repr: whoever reads it can log in."""

    user: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes


Alteration: TypeAlias = CredentialDeletion | CredentialUpsertion


class UserResult(NamedTuple):
    user: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class UserCredentials(NamedTuple):
    """What DescribeUserScramCredentials tells of one user: the iterations of each credential, or an error."""

    user: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    iterations: Sequence[tuple[ScramMechanism, int]] = ()


def decide_alter_scram_credentials(
    image: ClusterImage,
    deletions: Iterable[CredentialDeletion],
    upsertions: Iterable[CredentialUpsertion],
    *,
    new_secret: bytes | None = None,
) -> Decision[list[UserResult]]:
    """Each user on its own: what is wrong with one changes nothing for the others.

    One user may be named once in a request, also with two mechanisms, as in Apache Kafka. `new_secret` is random, and
    kept with the first credential of the cluster.
    """
    alterations: tuple[Alteration, ...] = (*deletions, *upsertions)
    wanted: dict[str, Alteration] = {}
    errors: dict[str, UserResult] = {}
    for alteration in alterations:
        user = alteration.user
        if user in errors:
            continue
        if wanted.pop(user, None) is not None:
            errors[user] = UserResult(user, ErrorCode.DUPLICATE_RESOURCE, ALTERED_TWICE)
            continue
        problem = _problem(image, alteration)
        if problem is None:
            wanted[user] = alteration
        else:
            errors[user] = UserResult(user, *problem)
    results = [*map(UserResult, wanted), *errors.values()]
    records = list(map(_record, wanted.values()))
    if records and new_secret is not None and NOBODY not in image.scram_credentials:
        secret = ScramCredential(b"", b"", new_secret, ITERATIONS_MIN)
        records.append(ScramCredentialSet(NOBODY, ScramMechanism.SHA_256, secret))
    return Decision(tuple(records), results)


def _problem(image: ClusterImage, alteration: Alteration) -> tuple[ErrorCode, str] | None:
    if not alteration.user:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"
    mechanism = _mechanism(alteration.mechanism)
    if mechanism is None:
        return ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"
    if isinstance(alteration, CredentialUpsertion):
        reason = _unacceptable(alteration)
        return None if reason is None else (ErrorCode.UNACCEPTABLE_CREDENTIAL, reason)
    if mechanism not in image.scram_credentials.get(alteration.user, {}):
        return ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
    return None


def _unacceptable(upsertion: CredentialUpsertion) -> str | None:
    if upsertion.iterations < ITERATIONS_MIN:
        return "Too few iterations"
    if upsertion.iterations > ITERATIONS_MAX:
        return "Too many iterations"
    if len(upsertion.salt) > SCRAM_SALT_BYTES_MAX:
        return f"The salt has {len(upsertion.salt)} bytes; at most {SCRAM_SALT_BYTES_MAX} are allowed"
    if not upsertion.salt or not upsertion.salted_password:
        return "Salt and salted password must not be empty"
    return None


def _mechanism(number: int) -> ScramMechanism | None:
    try:
        return ScramMechanism(number)
    except ValueError:
        return None


def _record(alteration: Alteration) -> ScramCredentialRemoved | ScramCredentialSet:
    mechanism = ScramMechanism(alteration.mechanism)
    if isinstance(alteration, CredentialDeletion):
        return ScramCredentialRemoved(alteration.user, mechanism)
    # Here, and not above: a broker without SCRAM starts without the modules of hashes.
    from moldau.security.sasl.scram.keys import credential_of

    credential = credential_of(mechanism, alteration.salted_password, alteration.salt, alteration.iterations)
    return ScramCredentialSet(alteration.user, mechanism, credential)


def describe_scram_credentials(image: ClusterImage, users: Sequence[str] | None) -> list[UserCredentials]:
    """Of these users, or of all who have a credential if none is named."""
    if not users:
        return [_described(image, user) for user in sorted(image.scram_credentials) if user != NOBODY]
    asked = dict.fromkeys(users, 0)
    for user in users:
        asked[user] += 1
    return [_described(image, user) if times == 1 else _asked_twice(user) for user, times in asked.items()]


def _described(image: ClusterImage, user: str) -> UserCredentials:
    credentials = image.scram_credentials.get(user)
    if credentials is None or user == NOBODY:
        message = f"Attempt to describe a user credential that does not exist: {user}"
        return UserCredentials(user, ErrorCode.RESOURCE_NOT_FOUND, message)
    iterations = [(mechanism, credentials[mechanism].iterations) for mechanism in sorted(credentials)]
    return UserCredentials(user, iterations=iterations)


def _asked_twice(user: str) -> UserCredentials:
    message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
    return UserCredentials(user, ErrorCode.DUPLICATE_RESOURCE, message)


def apply_scram_credential_set(draft: Draft, record: ScramCredentialSet) -> None:
    users = draft.scram_credentials()
    users[record.user] = {**users.get(record.user, {}), record.mechanism: record.credential}


def apply_scram_credential_removed(draft: Draft, record: ScramCredentialRemoved) -> None:
    users = draft.scram_credentials()
    rest = {mechanism: kept for mechanism, kept in users[record.user].items() if mechanism is not record.mechanism}
    if rest:
        users[record.user] = rest
    else:
        del users[record.user]


def scram_credential_records(image: ClusterImage) -> Iterator[ScramCredentialSet]:
    for user, credentials in image.scram_credentials.items():
        yield from (ScramCredentialSet(user, mechanism, credential) for mechanism, credential in credentials.items())


@dataclass(frozen=True, slots=True)
class ImageCredentials:
    """The credentials of the image of the moment, for logins: a change counts from the next login on."""

    image: Callable[[], ClusterImage]

    def lookup(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        return None if user == NOBODY else self.image().scram_credentials.get(user, {}).get(mechanism)


def fake_credentials(image: ClusterImage) -> FakeCredentials:
    """For users who do not exist; the same on every broker. While nobody exists there is nothing to hide."""
    from moldau.security.sasl.scram.keys import FakeCredentials, shape_of

    kept = image.scram_credentials.get(NOBODY, {}).get(ScramMechanism.SHA_256)
    users = [credentials for user, credentials in image.scram_credentials.items() if user != NOBODY]
    shapes = {
        mechanism: tuple(sorted({shape_of(each[mechanism]) for each in users if mechanism in each}))
        for mechanism in ScramMechanism
    }
    return FakeCredentials(b"" if kept is None else kept.server_key, shapes)


class CurrentFakes:
    """`fake_credentials` of the image of the moment, which looks at all users when one of them changed."""

    __slots__ = ("_fakes", "_image", "_of")

    def __init__(self, image: Callable[[], ClusterImage]) -> None:
        self._image = image
        self._of: object = None
        self._fakes: FakeCredentials | None = None

    def __call__(self) -> FakeCredentials:
        image = self._image()
        if self._fakes is None or image.scram_credentials is not self._of:
            self._fakes, self._of = fake_credentials(image), image.scram_credentials
        return self._fakes
