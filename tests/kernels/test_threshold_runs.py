"""Sorted runs with aggregates inside: what any window holds above any bound, against a look at each of its rows."""

import numpy as np
import pytest
from hypothesis import given

from swag.live.structures.above import Above, AggregatesAbove, CountsAbove
from swag.query.kind import ABOVE, Part
from tests import oracle
from tests.kernels.harness import Plan, Stream, Values, plans
from tests.kernels.operators import Truth, extremum, float_sum, floats, integers, wrapping_sum


def prices(rng: np.random.Generator, n: int, odd: float) -> np.ndarray:
    """Some equal, none NaN: keys have an order."""
    values = np.round(floats(rng, n, odd), 1)
    return np.where(np.isnan(values), -np.inf, values)


def check_above(stream: Stream, structure: Above, truth: Truth | None) -> None:
    """Random windows with a random bound for each key: a value that there is, or anything."""
    lo, hi = stream.windows(6)
    bounds = stream.values(stream.rng, stream.keys.size, 0.1)
    for k in stream.keys:
        if stream.rows[k] and stream.rng.random() < 0.7:
            bounds[k] = stream.rows[k][stream.rng.integers(len(stream.rows[k]))][-1]
    counts, states = structure.above(stream.keys, (lo, hi, bounds))
    for k in stream.keys:
        for w, (a, b) in enumerate(zip(lo[k], hi[k], strict=True)):
            rows, place = [row for row in stream.rows[k][a:b] if row[-1] > bounds[k]], k * lo.shape[1] + w
            assert counts[place] == len(rows)
            if truth is not None and rows:
                expected, allowed = truth(rows)
                assert oracle.same(expected, states[place].item(), allowed)


@pytest.mark.parametrize(
    ("family", "values", "truth"),
    [("sum", prices, float_sum), ("sum", integers, wrapping_sum), ("max", prices, extremum(max))],
)
@given(plan=plans(most_rows=150))
def test_what_any_window_holds_above_any_bound(family: str, values: Values, truth: Truth, plan: Plan) -> None:
    stream = Stream(plan, values, columns=2)
    aggregates = AggregatesAbove(stream.space, Part(family + ABOVE, ("x", "y")))
    counts = CountsAbove(stream.space, Part("count" + ABOVE, ("y",)))
    stream.structures += [aggregates, counts]
    for batch in plan.batches:
        stream.append(batch)
        check_above(stream, aggregates, truth)
        check_above(stream, counts, None)
    for structure in (aggregates, counts):
        made_again = type(structure)(stream.space, structure.part)
        made_again.rebuild()
        check_above(stream, made_again, truth if structure is aggregates else None)
