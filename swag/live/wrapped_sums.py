"""Running sums of integers wrap, and come back when a window is taken from them; unless its own sum is too large."""

from typing import Any

import numpy as np

from kernels.windows import running
from swag.errors import SumOverflow
from swag.live.plan import Plan
from swag.live.planner import Group
from swag.live.space import Mask


def without_overflow(
    plan: Plan, group: Group, mask: Mask, rings: np.ndarray, edges: tuple[np.ndarray, np.ndarray], state: Any
) -> Any:
    """What a structure of integers holds of some windows; raises if a sum of these does not fit. Of such, only the mean
    is known. rings: where the rows of the keys lie."""
    part, space, (lo, hi) = group.part, group.space, edges
    if part.family not in ("sum", "moments"):
        return state
    most = int((hi - lo).max(initial=0))
    if most * plan.largest[part.columns[0]] < 2**63:
        return state
    about = np.empty(lo.size)
    running.add_up_each(space.raw[part.columns[0]].data, space.arena.rings, rings, edges, about)
    exact = state[1] if isinstance(state, tuple) else state
    wrapped = (np.abs(about - exact) > 2.0**62) & (hi > lo).reshape(-1)
    if not wrapped.any():
        return state
    if plan.sums_asked(mask, part):
        value = about[wrapped][0]
        raise SumOverflow(
            f'a window of "{part.columns[0]}" sums to about {value:.3g}, which does not fit int64.',
            "cast the column to float64",
        )
    floats = np.where(wrapped, about, exact)
    return (state[0], floats, *state[2:]) if isinstance(state, tuple) else floats
