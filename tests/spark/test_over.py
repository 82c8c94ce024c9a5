"""Statements with OVER ( … ) on Spark give what sw.evaluate gives."""

from typing import Any

import pytest

import swag as sw
import swag.spark
from tests.spark.compare import assert_same
from tests.spark.test_groupings import some_events

STATEMENT = """
    SELECT id, "land.code", SUM(i) OVER w AS total, LAG(x) OVER w AS before,
           x - AVG(x) OVER (w ROWS 9 PRECEDING) AS above,
           COUNT(*) OVER (w RANGE BETWEEN 20 PRECEDING AND 5 FOLLOWING) AS near
    FROM trades WHERE i > 0 WINDOW w AS (PARTITION BY {} ORDER BY ts)
"""


@pytest.mark.parametrize("partition", ["card", '"land.code", rate', "shop"])
def test_a_statement_of_one_partition(spark: Any, partition: str) -> None:
    events, text = some_events(), STATEMENT.format(partition)
    found = swag.spark.sql(text, trades=spark.createDataFrame(events).repartition(1)).toArrow()
    assert_same(found, sw.evaluate(text, events), by="id")


def test_a_statement_that_sorts_its_rows(spark: Any) -> None:
    events = some_events()
    text = "SELECT id, RANK() OVER (ORDER BY ts) AS r FROM trades QUALIFY r > 10 ORDER BY r DESC, 1 LIMIT 20 OFFSET 3"
    found = swag.spark.sql(text, trades=spark.createDataFrame(events)).toArrow()
    assert found.to_pylist() == sw.evaluate(text, events).to_pylist()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SELECT SUM(i) OVER () AS s FROM tades", '"trades"'),
        ("SELECT SUM(i) OVER () AS s, SUM(i) OVER (PARTITION BY card) AS t FROM trades", "several partitions"),
        ("SELECT SUM(i) OVER (PARTITION BY i > 3) AS s FROM trades", "withColumn"),
        ("SELECT SUM(y) OVER (PARTITION BY card) AS s FROM trades", 'there is no column "y"'),
    ],
)
def test_what_can_not_be_answered_is_said(spark: Any, text: str, says: str) -> None:
    with pytest.raises(sw.SwagError) as found:
        swag.spark.sql(text, trades=spark.createDataFrame(some_events(10)))
    assert says in str(found.value)
