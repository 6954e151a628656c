"""Decisions are equalities: a state, a request, the records that it becomes."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace
from uuid import UUID

import pytest
from starlette.requests import Request

from moldau.registry.bodies import SchemaBody, config_body, schema_body
from moldau.registry.checking import Checker, Source, source_of
from moldau.registry.deciding.deleting import decide_subject_deletion, decide_version_deletion
from moldau.registry.deciding.registering import Candidate, completed, decide_registration
from moldau.registry.deciding.settings import decide_config, decide_context_deletion, decide_mode, decide_mode_deletion
from moldau.registry.identity import guid_of
from moldau.registry.records import (
    ConfigKey,
    ContextKey,
    DeleteSubjectKey,
    Entry,
    ModeKey,
    NoopKey,
    SchemaKey,
    StoredSchema,
    Unreadable,
    decoded,
    encoded,
)
from moldau.registry.serving.showing import NAMES_MAX, page
from moldau.registry.state import State
from moldau.schemas.model import Reference, SchemaType
from moldau.web.errors import ApiError

INT, LONG, TEXT = '"int"', '"long"', '"string"'


def state_of(*schemas: StoredSchema | Entry) -> State:
    state = State()
    for each in schemas:
        state.apply(each if isinstance(each, Entry) else Entry(each.key, each))
    return state


def avro(subject: str, text: str, **more: object) -> Candidate:
    return Candidate(subject, text, SchemaType.AVRO, **more)  # type: ignore[arg-type]


A1 = StoredSchema("a", 1, 1, INT)
A2 = StoredSchema("a", 2, 2, LONG)
A1_KEY = b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}'
A1_VALUE = b'{"subject":"a","version":1,"id":1,"schema":"\\"int\\"","deleted":false}'


def test_the_first_schema_gets_the_first_id() -> None:
    decision = decide_registration(state_of(), avro("a", INT), ())
    assert decision.entries == (Entry(A1.key, A1),)
    assert decision.reply == A1


def test_what_is_there_is_not_written_again() -> None:
    decision = decide_registration(state_of(A1, A2), avro("a", INT), ["incompatible, if it were new"])
    assert (decision.entries, decision.reply) == ((), A1)


def test_the_same_schema_of_another_subject_has_the_same_id() -> None:
    decision = decide_registration(state_of(A1, A2), avro("b", INT), ())
    assert decision.entries == (Entry(SchemaKey("b", 1), StoredSchema("b", 1, 1, INT)),)


def test_metadata_makes_another_schema() -> None:
    metadata = {"properties": {"owner": "me"}}
    decision = decide_registration(state_of(A1), avro("a", INT, metadata=metadata), ())
    assert decision.reply == StoredSchema("a", 2, 2, INT, metadata=metadata)


def test_a_context_has_ids_of_its_own_and_is_written_down_first() -> None:
    decision = decide_registration(state_of(A1, A2), avro(":.ctx:a", TEXT), ())
    stored = StoredSchema(":.ctx:a", 1, 1, TEXT)
    assert decision.entries == (
        Entry(ContextKey(".ctx"), {"tenant": "default", "context": ".ctx"}),
        Entry(stored.key, stored),
    )


def test_a_version_that_was_deleted_comes_back_under_a_new_number() -> None:
    deleted = replace(A1, is_deleted=True)
    decision = decide_registration(state_of(deleted, A2), avro("a", INT), ())
    new = replace(A1, version=3)
    assert decision.entries == (Entry(A1.key), Entry(new.key, new))


def test_what_is_incompatible_is_refused_in_confluents_words() -> None:
    with pytest.raises(ApiError, match=r'^Schema being registered .* subject "a", details: \[one, two\]$') as refused:
        decide_registration(state_of(A1), avro("a", TEXT), ["one", "two"])
    assert refused.value.code == 40_901


def test_an_id_that_another_schema_has_is_refused() -> None:
    with pytest.raises(ApiError) as refused:
        decide_registration(state_of(A1, Entry(ModeKey(None), {"mode": "IMPORT"})), avro("b", TEXT, id=1), ())
    assert refused.value.code == 42_207


def test_an_import_keeps_id_and_version() -> None:
    state = state_of(Entry(ModeKey(None), {"mode": "IMPORT"}))
    decision = decide_registration(state, avro("a", TEXT, id=70, version=9), ())
    assert decision.reply == StoredSchema("a", 9, 70, TEXT)


def test_ids_that_were_given_are_not_given_again_while_their_records_are_read() -> None:
    state = state_of(A1, A2, Entry(A2.key, replace(A2, is_deleted=True)), Entry(A2.key))
    assert decide_registration(state, avro("b", TEXT), ()).reply.id == 3


def test_defaults_and_overrides_surround_what_is_asked() -> None:
    config = {"defaultMetadata": {"properties": {"a": "1", "b": "1"}}, "overrideMetadata": {"properties": {"c": "3"}}}
    state = state_of(Entry(ConfigKey("a"), config))
    asked = SchemaBody(INT, metadata={"properties": {"b": "2", "c": "2"}})
    assert completed(state, "a", asked).metadata == {"properties": {"a": "1", "b": "2", "c": "3"}}


def test_what_is_not_said_is_as_before() -> None:
    rules = {"domainRules": [{"name": "r", "type": "CEL", "disabled": False}]}
    state = state_of(replace(A1, metadata={"properties": {"a": "1"}}, rule_set=rules))
    whole = completed(state, "a", SchemaBody(""))
    assert (whole.text, whole.metadata, whole.rule_set) == (INT, {"properties": {"a": "1"}}, rules)


def test_the_expected_version_is_in_the_metadata() -> None:
    whole = completed(state_of(A1), "a", SchemaBody(LONG, version=-1))
    assert whole.metadata == {"properties": {"confluent:version": "2"}}


def test_a_subject_is_deleted_by_one_record_and_then_by_tombstones() -> None:
    state = state_of(A1, A2, Entry(ConfigKey("a"), {"compatibilityLevel": "NONE"}))
    soft = decide_subject_deletion(state, "a", is_permanent=False)
    assert soft.entries == (Entry(DeleteSubjectKey("a"), {"subject": "a", "version": 2}),)
    assert soft.reply == [1, 2]
    for each in soft.entries:
        state.apply(each)
    hard = decide_subject_deletion(state, "a", is_permanent=True)
    assert hard.entries == (Entry(A2.key), Entry(A1.key), Entry(ConfigKey("a")))


@pytest.mark.parametrize(("version", "permanent", "code"), [(3, False, 40_402), (1, True, 40_407), (2, False, 40_406)])
def test_versions_that_are_not_deleted(version: int, permanent: bool, code: int) -> None:
    state = state_of(A1, replace(A2, is_deleted=True))
    with pytest.raises(ApiError) as refused:
        decide_version_deletion(state, "a", version, is_permanent=permanent)
    assert refused.value.code == code


def test_what_others_refer_to_stays() -> None:
    user = StoredSchema("b", 1, 3, TEXT, references=(Reference("A", "a", 1),))
    state = state_of(A1, user)
    for decide in (
        lambda: decide_version_deletion(state, "a", 1, is_permanent=False),
        lambda: decide_subject_deletion(state, "a", is_permanent=False),
    ):
        with pytest.raises(ApiError) as refused:
            decide()
        assert refused.value.code == 42_206
    state.apply(Entry(user.key))
    assert decide_version_deletion(state, "a", 1, is_permanent=False).reply == 1


def test_a_configuration_keeps_what_is_not_named() -> None:
    state = state_of(Entry(ConfigKey("a"), {"subject": "a", "compatibilityLevel": "FULL", "alias": "b"}))
    decision = decide_config(state, "a", config_body({"compatibility": "none", "alias": None, "normalize": True}))
    fields = {"compatibilityLevel": "NONE", "normalize": True}
    assert decision.entries == (Entry(ConfigKey("a"), {"subject": "a", **fields}),)
    assert decision.reply == fields


def test_levels_are_a_subjects_its_contexts_and_then_everybodys() -> None:
    state = state_of(
        Entry(ConfigKey(None), {"compatibilityLevel": "FULL"}), Entry(ConfigKey(":.c:"), {"compatibilityLevel": "NONE"})
    )
    levels = [state.config(each)["compatibilityLevel"] for each in (None, "a", ":.c:a", ":.d:a")]
    assert levels == ["FULL", "FULL", "NONE", "BACKWARD"]


def test_read_only_subjects_take_nothing() -> None:
    state = state_of(A1, Entry(ModeKey("a"), {"subject": "a", "mode": "READONLY"}))
    with pytest.raises(ApiError, match="is in read-only mode"):
        decide_version_deletion(state, "a", 1, is_permanent=False)
    assert decide_mode_deletion(state, "a", is_recursive=False).entries == (Entry(ModeKey("a")),)


def test_an_import_begins_on_empty_ground() -> None:
    with pytest.raises(ApiError, match="found existing subjects"):
        decide_mode(state_of(A1), None, "IMPORT", is_forced=False)
    gone = replace(A1, is_deleted=True)
    decision = decide_mode(state_of(gone), None, "IMPORT", is_forced=False)
    assert decision.entries == (Entry(A1.key), Entry(ModeKey(None), {"mode": "IMPORT"}))


def test_contexts_are_deleted_when_they_are_empty() -> None:
    schema = StoredSchema(":.c:a", 1, 1, INT)
    state = state_of(Entry(ContextKey(".c"), {"context": ".c"}), schema)
    with pytest.raises(ApiError) as refused:
        decide_context_deletion(state, ".c")
    assert refused.value.code == 42_211
    state.apply(Entry(schema.key))
    assert decide_context_deletion(state, ".c").entries == (Entry(ContextKey(".c")),)


def test_records_are_confluents() -> None:
    schema = StoredSchema("s", 1, 4, "{}", "JSON", (Reference("n", "r", 2),), {"properties": {}}, None)
    key, value = encoded(Entry(schema.key, schema))
    assert key == b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}'
    assert value == (
        b'{"subject":"s","version":1,"id":4,"schemaType":"JSON","references":[{"name":"n","subject":"r","version":2}],'
        b'"metadata":{"properties":{}},"schema":"{}","deleted":false}'
    )
    assert decoded(key, value) == Entry(schema.key, schema)
    assert encoded(Entry(NoopKey()))[0] == b'{"keytype":"NOOP","magic":0}'
    assert encoded(Entry(ConfigKey(None)))[0] == b'{"keytype":"CONFIG","magic":0}'


@pytest.mark.parametrize(
    "entry",
    [
        Entry(SchemaKey("a", 1)),
        Entry(ConfigKey("a"), {"subject": "a", "compatibilityLevel": "FULL"}),
        Entry(ModeKey(None), {"mode": "READONLY"}),
        Entry(DeleteSubjectKey("a"), {"subject": "a", "version": 2}),
        Entry(ContextKey(".c"), {"tenant": "default", "context": ".c"}),
        Entry(NoopKey()),
    ],
)
def test_records_are_read_as_they_were_written(entry: Entry) -> None:
    assert decoded(*encoded(entry)) == entry


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"{", b"{}"),
        (b'{"keytype":"ASSOC","magic":0}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}', b"[]"),
        (b'{"keytype":"CONFIG","magic":0}', b"7"),
        (b'{"keytype":"CONFIG","magic":0}', b'{"compatibilityLevel":"BOGUS"}'),
        (b'{"keytype":"CONFIG","subject":"a","magic":0}', b'{"alias":5}'),
        (b'{"keytype":"CONFIG","subject":"a","magic":0}', b'{"defaultMetadata":"x"}'),
        (b'{"keytype":"CONFIG","subject":["a"],"magic":0}', b"{}"),
        (b'{"keytype":"MODE","subject":"a","magic":0}', b'{"mode":["x"]}'),
        (b'{"keytype":"DELETE_SUBJECT","subject":"a","magic":0}', b'{"version":"x"}'),
        (b'{"keytype":"SCHEMA","subject":null,"version":1,"magic":1}', A1_VALUE),
        (b'{"keytype":"SCHEMA","subject":"\\ud800","version":1,"magic":1}', A1_VALUE),
        (b'{"keytype":"SCHEMA","subject":"a","version":0,"magic":1}', A1_VALUE),
        (b'{"keytype":"SCHEMA","subject":"a","version":2147483648,"magic":1}', A1_VALUE),
        (A1_KEY, A1_VALUE.replace(b'"id":1', b'"id":2147483648')),
        (A1_KEY, A1_VALUE.replace(b'"id":1', b'"id":-1')),
        (A1_KEY, A1_VALUE.replace(b'"\\"int\\""', b"null")),
        (A1_KEY, A1_VALUE.replace(b"false", b'false,"metadata":{"tags":5}')),
        (A1_KEY, A1_VALUE.replace(b"false", b'false,"ruleSet":{"domainRules":[5]}')),
        (A1_KEY, A1_VALUE.replace(b"false", b'false,"md5":5')),
    ],
)
def test_other_records_are_told(key: bytes | None, value: bytes) -> None:
    with pytest.raises(Unreadable):
        decoded(key, value)


def test_karapaces_records_are_read() -> None:
    assert decoded(A1_KEY, A1_VALUE) == Entry(A1.key, A1)


def test_a_stored_schema_of_an_unknown_type_is_told_when_it_is_to_be_parsed() -> None:
    stored = decoded(A1_KEY, A1_VALUE.replace(b"false", b'false,"schemaType":"XML"')).value
    assert isinstance(stored, StoredSchema)
    with pytest.raises(ApiError, match="Invalid schema type XML"):
        source_of(State(), stored)


def test_a_guid_is_the_md5_of_everything() -> None:
    """The value for a bare text is what `md5sum` says."""
    assert guid_of('"string"', (), None, None) == UUID("095d71cf-1255-6b9d-5e33-0ad575b3df5d")
    same = [guid_of(INT, (), {"properties": each}, None) for each in ({"a": "1", "b": "2"}, {"b": "2", "a": "1"})]
    assert same[0] == same[1]
    others = {guid_of(INT, (), None, None), guid_of(INT, (), {}, None), guid_of(INT, (), {}, {}), same[0]}
    assert len(others) == 4


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ([], 422),
        ({"schema": 7}, 422),
        ({"schema": "\ud800"}, 422),
        ({"schema": "x", "schemaType": "XML"}, 42_201),
        ({"schema": "x", "references": [{"name": "a"}]}, 42_201),
        ({"schema": "x", "references": 7}, 422),
        ({"schema": "x", "metadata": {"properties": {"a": 1}}}, 422),
        ({"schema": "x", "ruleSet": {"domainRules": [{"name": "1", "type": "CEL"}]}}, 42_210),
        ({"schema": "x" * 1_000_001}, 42_209),
        ({"schema": "x", "id": -2}, 422),
    ],
    ids=lambda each: str(each)[:40],
)
def test_bodies_that_are_refused(body: object, code: int) -> None:
    with pytest.raises(ApiError) as refused:
        schema_body(body)
    assert refused.value.code == code


def test_types_of_other_registries_are_kept_and_refused() -> None:
    """Their ids are taken, and what one says of them is one clear line."""
    other = StoredSchema("a", 1, 7, "struct A {}", "THRIFT")
    state = state_of(other)
    assert decide_registration(state, avro("b", INT), ()).reply.id == 8
    with pytest.raises(ApiError, match="Invalid schema type THRIFT") as refused:
        source_of(state, other)
    assert refused.value.code == 42_201


def test_a_level_that_somebody_left_open_is_the_default() -> None:
    state = state_of(Entry(ConfigKey("a"), {"subject": "a", "compatibilityLevel": None, "normalize": True}))
    assert state.config("a") == {"compatibilityLevel": "BACKWARD", "normalize": True}


@pytest.mark.parametrize(("level", "looked_at"), [("NONE", []), ("BACKWARD", [3]), ("FULL_TRANSITIVE", [3, 2, 1])])
def test_only_versions_that_the_level_looks_at_cost_something(level: str, looked_at: list[int]) -> None:
    """A subject may have thousands, each with references that are followed on the event loop."""
    versions, found = [StoredSchema("a", number, number, INT) for number in (1, 2, 3)], []

    def source(stored: StoredSchema) -> Source:
        found.append(stored.version)
        return source_of(state_of(), stored)

    async def check() -> list[str]:
        checker = Checker()
        try:
            return await checker.problems(await checker.parse(source_of(state_of(), A1)), level, versions, source)
        finally:
            checker.close()

    assert asyncio.run(check()) == []
    assert found == looked_at


@pytest.mark.parametrize(("query", "end"), [(b"offset=5&limit=2", 7), (b"offset=5", 5 + NAMES_MAX)])
def test_a_page_looks_no_further_than_its_end(query: bytes, end: int) -> None:
    request = Request({"type": "http", "query_string": query, "headers": []})
    assert page(request, itertools.count()) == [*range(5, end)]
