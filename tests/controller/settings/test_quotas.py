"""Client quotas in the metadata: which entities and values there may be, and who is found by a filter."""

from __future__ import annotations

import pytest

from moldau.controller.image import ClusterImage, QuotaEntity
from moldau.controller.machine import apply
from moldau.controller.records import ClientQuotasChanged
from moldau.controller.settings.quotas import (
    ADDRESS_AND_MORE,
    ADDRESS_AND_MORE_ASKED,
    NO_ENTITY,
    TOO_MANY,
    AlteredQuotas,
    Match,
    QuotaAlteration,
    QuotaComponent,
    decide_alter_client_quotas,
    describe_client_quotas,
    quota_entity,
)
from moldau.core.errors import ApiError, ErrorCode
from moldau.core.limits import CLIENT_QUOTAS_PER_REQUEST_MAX
from tests.controller.clusters import cluster

ALICE = quota_entity([("user", "alice")])
ALICE_APP = quota_entity([("user", "alice"), ("client-id", "app")])
ANY_USER = quota_entity([("user", None)])
RATE = "connection_creation_rate"
LOCAL = quota_entity([("ip", "127.0.0.1")])


def alteration(entity: QuotaEntity, *changes: tuple[str, float | None]) -> QuotaAlteration:
    return QuotaAlteration(entity, changes)


def altered(image: ClusterImage, *alterations: QuotaAlteration) -> ClusterImage:
    decision = decide_alter_client_quotas(image, alterations)
    assert {each.error for each in decision.reply} == {ErrorCode.NONE}
    return apply(image, decision.records)


def refusal(entity: QuotaEntity, *changes: tuple[str, float | None], unknown: frozenset[str] = frozenset()) -> str:
    decision = decide_alter_client_quotas(cluster(), [alteration(entity, *changes)], unknown_hosts=unknown)
    assert decision.records == ()
    (result,) = decision.reply
    assert result.error is ErrorCode.INVALID_REQUEST
    assert result.message is not None
    return result.message


def test_an_entity_keeps_its_other_keys_and_goes_with_the_last_of_them() -> None:
    image = altered(cluster(), alteration(ALICE, ("producer_byte_rate", 1024.0), ("request_percentage", 12.5)))
    image = altered(image, alteration(ALICE, ("producer_byte_rate", 2048.0)))
    assert image.client_quotas == {ALICE: {"producer_byte_rate": 2048.0, "request_percentage": 12.5}}
    image = altered(image, alteration(ALICE, ("producer_byte_rate", None)))
    assert image.client_quotas == {ALICE: {"request_percentage": 12.5}}
    image = altered(image, alteration(ALICE, ("request_percentage", None)))
    assert image.client_quotas == {}


def test_what_is_so_already_is_not_written_again() -> None:
    image = altered(cluster(), alteration(ALICE, ("producer_byte_rate", 1.0)))
    wanted = [alteration(ALICE, ("producer_byte_rate", 1.0), ("consumer_byte_rate", None), ("unknown", None))]
    assert decide_alter_client_quotas(image, wanted).records == ()


def test_a_trial_changes_nothing_and_says_what_would_come_of_it() -> None:
    wanted = [alteration(ALICE, ("producer_byte_rate", 1.0)), alteration(ANY_USER, ("producer_byte_rate", -1.0))]
    decision = decide_alter_client_quotas(cluster(), wanted, validate_only=True)
    assert decision.records == ()
    assert [each.error for each in decision.reply] == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]


def test_an_entity_is_the_same_whatever_the_order_of_its_parts() -> None:
    assert quota_entity([("client-id", "app"), ("user", "alice")]) == ALICE_APP


@pytest.mark.parametrize(
    ("entity", "change", "message"),
    [
        ((), ("producer_byte_rate", 1.0), NO_ENTITY),
        (quota_entity([("group", "g")]), ("producer_byte_rate", 1.0), "Unhandled client quota entity type: group"),
        (quota_entity([("user", "")]), ("producer_byte_rate", 1.0), "Empty user not supported"),
        (quota_entity([("user", "a"), ("ip", "::1")]), ("connection_creation_rate", 1.0), ADDRESS_AND_MORE),
        (ALICE, ("connection_creation_rate", 1.0), "Invalid configuration key connection_creation_rate"),
        (LOCAL, ("producer_byte_rate", 1.0), "Invalid configuration key producer_byte_rate"),
        (ALICE, ("producer_byte_rate", 0.0), "Quota producer_byte_rate must be greater than 0"),
        (ALICE, ("request_percentage", float("nan")), "Quota request_percentage must be greater than 0"),
        (ALICE, ("consumer_byte_rate", 1.5), "consumer_byte_rate cannot be a fractional value."),
        (ALICE, ("consumer_byte_rate", 1e19), "Proposed value for consumer_byte_rate is too large for a LONG."),
        (LOCAL, (RATE, 2.0**31), f"Proposed value for {RATE} is too large for an INT."),
    ],
)
def test_what_is_no_quota_is_refused_in_kafkas_words(
    entity: QuotaEntity, change: tuple[str, float], message: str
) -> None:
    assert refusal(entity, change) == message


def test_a_host_that_nobody_knows_is_refused() -> None:
    entity = quota_entity([("ip", "nobody.invalid")])
    message = refusal(entity, ("connection_creation_rate", 1.0), unknown=frozenset({"nobody.invalid"}))
    assert message == "nobody.invalid is not a valid IP or resolvable host."


def test_an_entity_that_is_named_twice_is_refused_and_the_first_change_stays() -> None:
    twice = [alteration(ALICE_APP, ("producer_byte_rate", 1.0)), alteration(ALICE_APP, ("consumer_byte_rate", 1.0))]
    decision = decide_alter_client_quotas(cluster(), twice)
    message = "Ignoring duplicate entity ClientQuotaEntity(entries={client-id=app, user=alice})"
    assert decision.reply == [AlteredQuotas(ALICE_APP, ErrorCode.INVALID_REQUEST, message)]
    assert decision.records == (ClientQuotasChanged(ALICE_APP, {"producer_byte_rate": 1.0}),)


def test_a_key_that_is_named_twice_is_refused() -> None:
    message = refusal(ANY_USER, ("producer_byte_rate", 1.0), ("producer_byte_rate", 2.0))
    assert message == "Ignoring duplicate entity ClientQuotaEntity(entries={user=null})"


def test_one_request_is_bounded() -> None:
    many = [
        alteration(quota_entity([("user", str(number))]), ("producer_byte_rate", 1.0))
        for number in range(CLIENT_QUOTAS_PER_REQUEST_MAX + 1)
    ]
    with pytest.raises(ApiError, match=TOO_MANY):
        decide_alter_client_quotas(cluster(), many)


def found(*components: QuotaComponent, strict: bool = False) -> set[QuotaEntity]:
    image = altered(
        cluster(),
        *[alteration(entity, ("producer_byte_rate", 1.0)) for entity in (ALICE, ALICE_APP, ANY_USER)],
        alteration(LOCAL, ("connection_creation_rate", 1.0)),
    )
    return {entity for entity, _ in describe_client_quotas(image, components, strict=strict)}


def test_a_filter_finds_names_defaults_and_all() -> None:
    assert found() == {ALICE, ALICE_APP, ANY_USER, LOCAL}
    assert found(strict=True) == set()
    assert found(QuotaComponent("user", Match.EXACT, "alice")) == {ALICE, ALICE_APP}
    assert found(QuotaComponent("user", Match.EXACT, "alice"), strict=True) == {ALICE}
    assert found(QuotaComponent("user", Match.DEFAULT)) == {ANY_USER}
    assert found(QuotaComponent("user", Match.SPECIFIED)) == {ALICE, ALICE_APP, ANY_USER}
    both = QuotaComponent("user", Match.EXACT, "alice"), QuotaComponent("client-id", Match.SPECIFIED)
    assert found(*both, strict=True) == {ALICE_APP}
    assert found(QuotaComponent("ip", Match.EXACT, "127.0.0.1")) == {LOCAL}
    assert found(QuotaComponent("ip", Match.DEFAULT)) == set()


@pytest.mark.parametrize(
    ("components", "code", "message"),
    [
        ([("", 0, "a")], ErrorCode.INVALID_REQUEST, "Invalid empty entity type."),
        ([("group", 0, "a")], ErrorCode.UNSUPPORTED_VERSION, "Unsupported entity type group"),
        ([("user", 0, None)], ErrorCode.INVALID_REQUEST, "MATCH_TYPE_EXACT, but set match string to null."),
        ([("user", 1, "a")], ErrorCode.INVALID_REQUEST, "MATCH_TYPE_DEFAULT, but also specified a match string."),
        ([("user", 2, "a")], ErrorCode.INVALID_REQUEST, "MATCH_TYPE_SPECIFIED, but also specified a match string."),
        ([("user", 3, None)], ErrorCode.INVALID_REQUEST, "Unknown match type 3"),
        ([("user", 2, None)] * 2, ErrorCode.INVALID_REQUEST, "Entity type user cannot appear more than once in the"),
        ([("user", 2, None), ("ip", 2, None)], ErrorCode.INVALID_REQUEST, ADDRESS_AND_MORE_ASKED),
    ],
)
def test_a_wrong_filter_is_refused_in_kafkas_words(
    components: list[tuple[str, int, str | None]], code: ErrorCode, message: str
) -> None:
    with pytest.raises(ApiError) as refused:
        describe_client_quotas(cluster(), [QuotaComponent(*each) for each in components], strict=False)
    assert refused.value.code is code
    assert message in refused.value.message
