"""docs/sql.md is a reference: every function that is taken stands in it, and all that stands in its tables runs."""

import datetime
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp

import swag as sw
from frames.specs.kinds import KINDS as FRAMES
from swag.query.kind import KINDS
from swag.sql.functions import AGGREGATES
from swag.sql.over.functions import FURTHER, POSITIONS
from swag.tables.expressions.expression import compiled, values
from swag.tables.expressions.functions import CALLS, OPERATIONS
from swag.tables.expressions.times import PARTS

ROOT = Path(__file__).parent.parent.parent
TEXT = (ROOT / "docs" / "sql.md").read_text()
EVENTS = pa.table(
    {
        "ts": pa.array([datetime.datetime(2024, 3, 1, 9, 30, second) for second in range(3)], pa.timestamp("us")),
        "x": [1.5, None, 3.0], "y": [2.0, 1.0, 1.0], "i": [1, 2, 3], "j": [4, 5, 6], "s": ["a", " b", None],
        "r": ["x", "y", "z"], "b": [True, None, False], "d": [datetime.date(2024, 3, day) for day in (1, 2, 3)],
        "e": [datetime.date(2024, 2, day) for day in (1, 2, 3)], "o": [datetime.time(hour) for hour in (9, 10, 11)],
    }
)  # fmt: skip


def spans(first: str, last: str) -> list[str]:
    """What is written as code in a part of the page."""
    part = TEXT.split(first)[1].split(last)[0]
    table = "\n".join(line for line in part.splitlines() if line.startswith("|"))
    return [each.replace(r"\|", "|") for each in re.findall(r"`([^`]+)`", table)]


WRITTEN = spans("## Over the columns of an event", "## Over aggregates")
SUMMARIES = spans("### Aggregates", "## Over the columns of an event")


@pytest.mark.parametrize("text", WRITTEN)
def test_an_expression_of_the_reference_is_computed(text: str) -> None:
    assert len(values(compiled(text), EVENTS, text)) == 3


@pytest.mark.parametrize("text", SUMMARIES)
def test_an_aggregate_of_the_reference_is_read(text: str) -> None:
    [query] = sw.sql(f"SELECT {text} FROM t [ROWS 3]")
    assert isinstance(query.aggregate, sw.Aggregate)


def test_every_function_that_is_taken_stands_in_the_reference() -> None:
    named = {each.split("(")[0] for each in WRITTEN + SUMMARIES}
    assert named >= AGGREGATES.keys()
    assert named >= CALLS.keys()
    assert all(f"`{name}" in TEXT for name in [*POSITIONS, *FURTHER])
    assert all(f"`{part.lower()}`" in TEXT for part in PARTS)
    functions = [getattr(exp, name) for name in OPERATIONS if issubclass(getattr(exp, name), exp.Func)]
    called = {type(node) for text in WRITTEN for node in compiled_tree(text).walk()}
    aliases = {exp.WeekOfYear, exp.DayOfMonth}  # that are read as Week and Day
    assert not [each for each in functions if each not in called | aliases]


def compiled_tree(text: str) -> Any:
    import sqlglot

    return sqlglot.parse_one(text, dialect="duckdb")


def test_the_readme_names_every_aggregate_window_and_frame() -> None:
    readme = (ROOT / "README.md").read_text()
    hidden = {"approx_count_distinct", "aggregate"}  # an option, and your own
    assert not [kind for kind in KINDS if f"`{kind}`" not in readme and kind not in hidden]
    assert not [each for each in ("Rows", "Range", "Unbounded", "Since") if f"`{each}(" not in readme]
    frames = {kind.__name__ for kind in FRAMES} - {"Custom"}  # your own
    assert not [each for each in frames if f"`{each}`" not in readme]
