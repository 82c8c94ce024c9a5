"""What a frame is: kinds of data-driven windows as frozen values. Nothing is read until they meet events.

Threshold("drop_pct", ">", 0.3, min_duration="2m")   maximal runs for which a predicate holds
Session("30m")                                       runs without a longer silence
State("status")                                      maximal runs of one value of a column
Between(start="x > 5", end="x < 2")                  from an event that opens to one that closes
Boundary({"x": 4.25, "y": 4.2})                      maximal runs inside one cell of a grid
Delta("fl", 0.05)                                    runs over which a value moves less than x
Aggregate(sw.sum("volume"), ">=", 25)                runs cut by an aggregate of their events

A file per kind; spec.py has the class that they are made from, lengths.py how short and how long frames may be,
kinds.py the list of kinds, as_json.py parts of their JSON.
"""

from frames.specs.aggregate import Aggregate
from frames.specs.between import Between
from frames.specs.boundary import Boundary
from frames.specs.delta import Delta
from frames.specs.kinds import check_spec, spec_from_json
from frames.specs.session import Session
from frames.specs.spec import BEFORE, Spec
from frames.specs.state import State
from frames.specs.threshold import Threshold

__all__ = [
    "BEFORE", "Aggregate", "Between", "Boundary", "Delta", "Session", "Spec", "State", "Threshold", "check_spec",
    "spec_from_json",
]  # fmt: skip
