"""Every kind of aggregate has an answer by definition, and is drawn by the properties of all who answer it."""

import numpy as np
import pytest

import swag as sw
from swag.query.aggregates import of
from swag.query.families import parts_of
from swag.query.kind import KINDS, Kind
from swag.sql.functions import AGGREGATES as STATEMENTS
from swag.stored.evaluation import BY_KIND
from tests import oracle_aggregates, test_engine_stateful, test_evaluate
from tests.frames import test_fill
from tests.fuzz import drawing

ELSEWHERE = {"aggregate", "approx_count_distinct"}  # the latter is, over rows, as exact as the other
DRAWN = {
    "tests/test_evaluate.py": {aggregate.kind for aggregate, _ in test_evaluate.AGGREGATES},
    "tests/test_engine_stateful.py": {kind for kind, *_ in test_engine_stateful.KINDS} | ELSEWHERE,
    "tests/fuzz/drawing.py": {of.kind for of in drawing.OF_ALL_KINDS} | ELSEWHERE,
    "tests/frames/test_fill.py": {aggregate.kind for aggregate in test_fill.AGGREGATES + test_fill.FURTHER},
}  # functions of users: of tests/test_user_defined.py, and of the fuzzer's target "own"


@pytest.mark.parametrize("where", DRAWN)
def test_every_kind_is_drawn(where: str) -> None:
    missing = ", ".join(KINDS.keys() - DRAWN[where])
    assert not missing, f"{where} does not draw {missing}: tests/every_kind.py should find columns for it"


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: str(kind.name))
def test_every_kind_can_be_answered(kind: Kind) -> None:
    defined = {*ELSEWHERE, *oracle_aggregates.AGGREGATES, *oracle_aggregates.TIMED, *oracle_aggregates.COUNTS}
    assert kind.name in defined, "tests/oracle_aggregates.py says what its answer is"
    assert kind.family or kind.name in BY_KIND, "BY_KIND of swag/stored/evaluation.py says how"
    assert kind.statements or kind.name == "aggregate"
    for name, function in kind.statements.items():
        assert STATEMENTS[name] is function
        if not function.least:
            assert parts_of(function.build(*"xy"[: function.columns])) is not None


def test_a_new_kind_from_partials_that_others_have_a_fast_way_for_is_answered_by_its_own_lower(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def spread_of_mean(aggregate, n, partials):
        _, _, _, m2 = partials[0]
        return np.sqrt(m2 / np.maximum(n - 1.0, 1.0) / n), n > 1

    monkeypatch.setitem(KINDS, "sem", Kind("sem", spread_of_mean, "moments"))
    events = {"ts": [1, 2, 3], "x": [1.0, 3.0, 8.0]}
    queries = [sw.Query(each, sw.Rows(2), name=each.kind) for each in (of("sem", "x"), sw.std("x", ddof=0))]
    assert sw.evaluate(queries, events)["sem"].to_pylist() == [None, 1.0, 2.5]
