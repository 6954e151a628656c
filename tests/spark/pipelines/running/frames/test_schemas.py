"""Two parsers of schemas, Spark's and ours for processes that have no session, held against each other."""

from __future__ import annotations

import pyarrow as pa
import pytest

from moldau.spark.formats import FormatError
from moldau.spark.formats.schema_text import parse_schema_text
from moldau.spark.pipelines.running.frames.schemas import schemas_by_spark

pytestmark = pytest.mark.usefixtures("spark")

PLACE = "option valueSchema"
READ = [
    "id long, customer string",
    "id BIGINT NOT NULL, name STRING COMMENT 'who'",
    "`a b` int, `a``b` string, `from` date",
    "a: int, b: string",
    "a: int, b string not null",
    "id int -- the number\n, name string /* of\nthe customer */",
    "-- first a word\nid int",
    "a int comment 'it''s', b int comment \"so \\\" it is\", c int comment 'a' 'b'",
    "a tinyint, b byte, c smallint, d short, e int, f integer, g bigint, h long, i float, j real, k double",
    "a boolean, b string, c binary, d date, e timestamp, f timestamp_ltz, g timestamp_ntz",
    "a decimal, b decimal(5), c decimal(10,2), d dec(38, 38), e numeric( 3 , 0 )",
    "a char(3), b varchar(10), c character(2)",
    "s struct<x: int, y struct<z: array<map<string, double>>>>",
    "s struct<`x y`: int not null comment 'inside', z string>",
    "m map<string, array<decimal(9,2)>>, a array<array<int>>",
    "m MAP < STRING , INT > , a ARRAY<\n STRING >",
    "struct<a:int,b:string>",
    "array<struct<id:bigint>>",
    "map<string,int>",
    "decimal(10,2)",
    "  string  ",
    "varchar(4)",
    "INT",
    "int int, date date, array int, struct string, map array<int>, decimal decimal(4,1), timestamp timestamp",
    "select int, order string, table double, not int, comment string comment 'comment', null int",
    "`größe` double, _x int, x1 int, 1x int",
    "a int,b int",
]
REFUSED = [
    "id",
    "id bignt",
    "id int,",
    ",id int",
    "id int id2 int",
    "id int, , b int",
    "a array<int",
    "a array<int>>",
    "a array",
    "a array<>",
    "a map<string>",
    "a map<string,int,int>",
    "a struct<>",
    "a struct",
    "a struct<b>",
    "a decimal(40,2)",
    "a decimal(5,10)",
    "a decimal(0)",
    "a decimal(1,2,3)",
    "a decimal()",
    "a decimal(x)",
    "a decimal(10,-2)",
    "a varchar",
    "a varchar(1,2)",
    "a int(5)",
    "a int not",
    "a int not nul",
    "a int null null",
    "a int comment",
    "a int comment who",
    "a int comment 'who' not null",
    "a int; b int",
    "a int, a string",
    "a.b int",
    "a-b int",
    "12 int",
    "1e5 int",
    "1L int",
    "größe double",
    "'a' int",
    '"a" int',
    "`a int",
    "`a` `int`",
    "a 'int'",
    "a int comment 'who",
    "a int /* who",
    "int not null",
    "a void",
    "a variant",
    "a interval",
    "a interval day to second, b int",
    "a interval year to month",
    "a time(6)",
    "a string collate unicode_ci",
    "array<string collate unicode_ci>",
    "s struct<a: string collate unicode_ci>",
]


def by_spark(text: str) -> pa.DataType:
    """As a pipeline hands it to the processes of the data source."""
    return parse_schema_text(schemas_by_spark({"valueSchema": text})["valueSchema"], place=PLACE)


@pytest.mark.parametrize("text", READ)
def test_both_read_the_same(text: str) -> None:
    found = by_spark(text)
    ours = parse_schema_text(text, place=PLACE)
    assert ours.equals(found, check_metadata=False)
    assert str(ours) == str(found)


@pytest.mark.parametrize("text", REFUSED)
def test_both_refuse_and_name_the_option(text: str) -> None:
    for parse in (by_spark, lambda text: parse_schema_text(text, place=PLACE)):
        with pytest.raises(FormatError, match=r"^option valueSchema") as refused:
            parse(text)
        assert "\n" not in str(refused.value).replace(text, "")


def test_what_is_no_ddl_stays_as_it_is() -> None:
    kept = {"valueschema": '{"type": "object", "properties": {"id": {"type": "integer"}}}', "subscribe": "id int"}
    assert schemas_by_spark(kept) == kept
    assert schemas_by_spark({"keyschema": " id int"})["keyschema"].startswith('{"fields"')
