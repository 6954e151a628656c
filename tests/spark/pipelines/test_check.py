"""What is found wrong with a plan before anything runs."""

from __future__ import annotations

import pytest

from moldau.spark.pipelines.check import check
from moldau.spark.pipelines.language.grammar import parse
from moldau.spark.pipelines.running.frames.sources import starting_at, topic_options

SOUND = "create stream a from topic 'a'; create sink s into topic 'out' as select * from a"
XML = "valueFormat = xml, valueSchema = 'id int'"


def problems(source: str) -> list[str]:
    return [str(problem) for problem in check(parse(source, "p.sql", name="p"))]


def test_a_sound_plan_has_no_problems() -> None:
    assert problems(SOUND) == []


def test_prefixes_of_the_pipeline_are_those_of_its_topics() -> None:
    plan = parse(f"set groupIdPrefix = team; set transactionalIdPrefix = 'team-tx'; {SOUND}", "p.sql", name="p")
    assert check(plan) == []
    for endpoint in (plan.sources[0].endpoint, plan.sinks[0].endpoint):
        options = topic_options(endpoint, plan)
        assert (options["groupIdPrefix"], options["transactionalIdPrefix"]) == ("team", "team-tx")


def test_a_quick_check_asks_no_registry() -> None:
    by_registry = SOUND.replace("topic 'a'", "topic 'a' with (valueFormat = protobuf)")
    by_registry = by_registry.replace("topic 'out'", "topic 'out' with (valueFormat = avro)")
    assert problems(f"set schema.registry.url = 'http://127.0.0.1:1'; {by_registry}") == []
    assert problems(by_registry) == [
        "p.sql:1: a: option schema.registry.url is missing: valueFormat=protobuf is for records of a registry"
    ]
    (wrong, also) = problems(f"set schema.registry.url = 'x://y'; {by_registry}")
    assert "a: Invalid URL 'x://y' of a schema registry" in wrong
    assert "sink s: Invalid URL" in also
    unknown = problems(f"set schema.registry.url = 'http://x'; set schema.registry.colour = red; {by_registry}")
    assert "Unknown setting 'colour' of the schema registry" in unknown[0]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("set kafka.sesion.timeout = 5;", 'a: options kafka.*: No such configuration property: "sesion.timeout"'),
        (
            "set kafka.acks = many;",
            'sink s: options kafka.*: Invalid value for configuration property "request.required.acks"',
        ),
        (
            "set kafka.security.protocol = plain;",
            'Invalid value "plain" for configuration property "security.protocol"',
        ),
    ],
)
def test_the_client_library_judges_its_settings(settings: str, said: str) -> None:
    plan = parse(f"{settings} {SOUND}", "p.sql", name="p")
    assert check(plan) == []
    assert any(said in str(problem) for problem in check(plan, asks_library=True)), check(plan, asks_library=True)


@pytest.mark.parametrize("format_name", ["avro", "json", "protobuf"])
@pytest.mark.parametrize("end", ["topic 'a'", "topic 'out'"])
def test_a_schema_in_the_text_has_to_be_one(format_name: str, end: str) -> None:
    name = f"value{format_name.capitalize()}Schema"
    text = SOUND.replace(end, f"{end} with (valueFormat = {format_name}, {name} = 'none')")
    (wrong,) = problems(f"set schema.registry.url = 'http://127.0.0.1:1'; {text}")
    assert f"option {name} is no schema: " in wrong


@pytest.mark.parametrize("key", ["auto.offset.reset", "ksql.streams.auto.offset.reset"])
@pytest.mark.parametrize("value", ["earliest", "latest"])
def test_streams_begin_where_ksqls_setting_says(key: str, value: str) -> None:
    plan = parse(f"SET '{key}'='{value}'; {SOUND}", "p.sql", name="p")
    assert check(plan) == []
    assert starting_at({}, {}, plan) == {"startingOffsets": value}
    assert starting_at({"startingTimestamp": "5"}, {}, plan) == {"startingTimestamp": "5"}
    assert starting_at({}, {"startingOffsets": "replayed"}, plan) == {"startingOffsets": "replayed"}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("create stream a from topic 'a'", "nothing is written anywhere"),
        (f"set colour = red; {SOUND}", "setting colour is unknown; allowed: name, bootstrap.servers"),
        (f"set checkpoint = ''; {SOUND}", "p.sql:1: setting checkpoint is empty; leave it out for the default"),
        (f"create view a as select 1 as x; {SOUND}", "the name a is taken: see p.sql:1"),
        (SOUND.replace("* from a", "* from aa"), "s reads aa, which is no stream, table or view here; is a meant?"),
        (f"{SOUND};\ncreate view v as select * from w;\ncreate view w as select * from v", "view v reads itself"),
        (SOUND.replace("stream a from topic", "stream a from delta"), "read delta as a TABLE"),
        (SOUND.replace("stream a", "table a"), "table a needs a KEY"),
        (SOUND.replace("topic 'a'", "topic 'a' changes"), "change events of a need a KEY"),
        (SOUND.replace("topic 'a'", "topic 'a' deduplicate on id"), "DEDUPLICATE needs a WATERMARK"),
        (SOUND.replace("topic 'out'", "delta 'out' upsert"), "UPSERT needs a KEY"),
        (SOUND.replace("topic 'out'", "console key a upsert"), "not into console"),
        (SOUND.replace("topic 'out'", "delta 'out' output update"), "updated rows need UPSERT"),
        (SOUND.replace("topic 'out'", "delta 'out' output complete"), "use UPSERT"),
        (
            SOUND.replace("topic 'out'", "database 'sqlite_x' with (url = 'sqlite:///x.db')"),
            "doesn't begin with sqlite_",
        ),
        (
            SOUND.replace("topic 'a'", "topic 'a' with (valueFormat = yaml)"),
            "a: option valueFormat = 'yaml': allowed is one",
        ),
        (
            SOUND.replace("topic 'out'", "topic 'out' with (valueFormat = yaml)"),
            "sink s: option valueFormat = 'yaml': allo",
        ),
        (SOUND.replace("topic 'a'", "topic 'a' with (valueFormat = xml)"), "valueFormat=xml needs a schema here"),
        (
            SOUND.replace("topic 'a'", f"topic 'a' with ({XML}, onError = shrug)"),
            "onError = 'shrug': allowed is one of",
        ),
        (
            SOUND.replace("topic 'a'", f"topic 'a' with ({XML}, deadLetterTopic = l)"),
            "option deadLetterTopic: with valu",
        ),
        (SOUND.replace("topic 'a'", f"topic 'a' with ({XML}, xml.mode = x)"), "option xml.mode is not set here"),
        (
            SOUND.replace("topic 'a'", f"topic 'a' with ({XML}, keyFormat = xml)"),
            "option keyFormat = 'xml': allowed is",
        ),
        (SOUND.replace("stream a from topic 'a'", f"table a from topic 'a' key id with ({XML})"), "xml is for streams"),
        (f"set 'auto.offset.reset' = 'none'; {SOUND}", "setting auto.offset.reset = 'none': allowed are earliest and"),
        (f"set kafka.auto.offset.reset = latest; {SOUND}", "where a query begins is said by startingOffsets"),
        (SOUND.replace("topic 'a'", "topic 'a' with (startingOffsets = now)"), "startingOffsets = 'now'"),
        (SOUND.replace("topic 'a'", "topic 'a' with (onError = shrug)"), "onError = 'shrug': allowed is one of fail"),
        (
            SOUND.replace("topic 'a'", "topic 'a' with (valueFormat = json, valueSchema = 'a inte')"),
            "option valueSchema",
        ),
        (SOUND.replace("topic 'out'", "topic 'out' with (delivery = twice)"), "delivery = 'twice': allowed are"),
        (
            SOUND.replace("topic 'out'", "topic 'out' with (topicPartitions = 0)"),
            "sink s: option topicPartitions = '0': allowed is a whole number above 0",
        ),
        (SOUND.replace("topic 'out'", "delta 'out' with (colour = red)"), "sink s: option 'colour' is not known here"),
        (SOUND.replace("topic 'out'", "delta 'out' with (targetFileSize = 0)"), "sink s: option targetFileSize = '0'"),
        (SOUND.replace("topic 'out'", "delta 'out' with (delivery = x)"), "sink s: option delivery = 'x': allowed are"),
        (SOUND.replace("topic 'out'", "iceberg 'a.b'"), "sink s: option warehouse is missing"),
        (SOUND.replace("topic 'out'", "iceberg 'b' with (warehouse = 'w')"), "it takes NAMESPACE.TABLE"),
        (SOUND.replace("topic 'out'", "database 'b'"), "sink s: option url is missing: for example postgresql://"),
        (
            SOUND.replace("topic 'out'", "database 'b' with (url = 'mysql://x')"),
            "sink s: option url: 'mysql' is not kn",
        ),
        (
            SOUND.replace("topic 'out'", "files 'b' with (format = xls)"),
            "sink s: format 'xls' is unknown; allowed: par",
        ),
        (f"{SOUND}; create table t from files 't' with (format = xls)", "t: format 'xls' is unknown; allowed: parquet"),
        (f"{SOUND}; create table t from delta 't' with (colour = red)", "t: option 'colour' is not known here"),
        (
            f"{SOUND}; create table t from topic 't' key id",
            "t: there is no column id to be its key; its columns: value",
        ),
        (
            f"{SOUND}; create table t from topic 't' key ib with (valueFormat = json, valueSchema = 'id int')",
            "t: there is no column ib to be its key; its columns: id",
        ),
        (SOUND.replace("topic 'a'", "topic 'a' changes key id"), "a: change events need valueSchema: the columns of a"),
        (f"{SOUND}; expect e on s check (x) otherwise drop", "put it on what the sink reads"),
        (f"{SOUND}; expect e on a check () otherwise drop", "expectation e has no condition"),
        (f"{SOUND}; {'expect e on a check (x) otherwise drop;' * 2}", "more than one expectation e on a"),
        (
            f"{SOUND}; create table t from topic 't' key (id); expect e on t check (x) otherwise dead letter",
            "a table is read again with every batch",
        ),
        (
            SOUND.replace("topic 'out'", "files 'out'") + "; expect e on A check (x) otherwise dead letter",
            "sink s reads a, whose dead letters need a sink that takes a batch once",
        ),
        (SOUND.replace("* from a", "1 as x"), "s reads nothing"),
        (f"{SOUND};\ncreate view v as select * from a", "p.sql:2: warning: nothing reads v"),
    ],
)
def test_a_problem_is_found(source: str, said: str) -> None:
    assert any(said in line for line in problems(source)), problems(source)
