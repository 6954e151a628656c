from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moldau.groups.classic.id_set import IdSet

IDS = st.frozensets(st.text(max_size=2), max_size=20)


@given(steps=st.lists(st.tuples(st.booleans(), IDS)))
def test_it_holds_what_a_set_would(steps: list[tuple[bool, frozenset[str]]]) -> None:
    ids, expected = IdSet(), frozenset[str]()
    for is_added, some in steps:
        before, was = ids, sorted(ids)
        ids = ids.with_ids(some) if is_added else ids.without(some)
        expected = expected | some if is_added else expected - some
        assert (frozenset(ids), len(ids), bool(ids)) == (expected, len(expected), bool(expected))
        assert all((one in ids) == (one in expected) for one in some)
        assert sorted(before) == was, "an id set never changes"
    assert ids == IdSet.of(*expected)


def test_a_change_shares_nearly_everything_with_the_set_before() -> None:
    many = IdSet.of(*map(str, range(10_000)))
    more = many.with_ids(["another"])
    assert sum(one is not other for one, other in zip(many.parts, more.parts, strict=True)) == 1
