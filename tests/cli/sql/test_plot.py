"""Bars of plain characters, on a terminal and without one."""

from __future__ import annotations

import io
from decimal import Decimal

import pytest

from moldau.cli.failures import UsageError
from moldau.cli.sql.plot import BARS_MAX, Plot, plot_rows


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_without_a_terminal_each_answer_is_a_line() -> None:
    output = io.StringIO()
    plot = Plot(("page", "clicks"), output, width=30)
    for row in (("/a", 10), ("/b", 5), ("/b", 20), ("/c", 0), ("/d", Decimal("0.1"))):
        plot.add(row)
    assert output.getvalue().splitlines() == [
        "/a  ###################### 10",
        "/b  ########### 5",
        "/b  ###################### 20",
        "/c   0",
        "/d  . 0.1",
    ]
    assert "\x1b" not in output.getvalue()


def test_a_terminal_is_drawn_anew_and_never_wraps() -> None:
    output = Terminal()
    plot = Plot(("page", "clicks"), output, width=30)
    plot.add(("/a", 10))
    plot.add(("/b", 1_234_567))
    first, second = output.getvalue().split("\x1b[1A\x1b[J")
    assert first == "/a  ###################### 10\n"
    assert second == "/a  . 10\n/b  ############### 1,234,567\n"
    assert all(len(line) < 30 for line in second.splitlines())


def test_the_newest_names_stay() -> None:
    output = Terminal()
    plot = Plot(("minute", "clicks"), output, width=30)
    for minute in range(BARS_MAX + 5):
        plot.add((minute, 1))
    shown = output.getvalue().rpartition("\x1b[J")[2].splitlines()
    assert (len(shown), shown[0].split()[0], shown[-1].split()[0]) == (BARS_MAX, "5", str(BARS_MAX + 4))


def test_one_column_and_what_is_no_number() -> None:
    output = io.StringIO()
    plot_rows(("n",), [(1,), (None,), (float("nan"),)], output)
    assert output.getvalue().splitlines()[0] == "n"
    assert output.getvalue().splitlines()[-1].split() == [".", "nan"]
    with pytest.raises(UsageError, match="--plot draws the last column, and page is no number but '/a'"):
        plot_rows(("n", "page"), [(1, "/a")], io.StringIO())
