"""Quantiles over windows that structures of ranks hold: elements by their ranks, or between two of them."""

from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from swag.live.plan import Plan
from swag.live.space import Mask
from swag.live.store import Store
from swag.live.structures.routes import Route
from swag.live.window_edges import Edges
from swag.query.aggregates import Aggregate
from swag.query.kind import Part
from swag.query.kinds.quantiles import Neighbours, ranks, ranks_of


class Located(Protocol):
    """Some keys, and the edges of windows in every space: a request."""

    store: Store
    plan: Plan
    ids: np.ndarray

    def rings(self, mask: Mask) -> np.ndarray:
        """In the space of a mask: where the rows of the keys lie."""

    def chosen(self, mask: Mask, windows: list[int]) -> Edges:
        """The edges of some windows, as kernels take them."""


def quantiles(one: Located, aggregates: list[Aggregate], routes: list[Route], which: list[int]) -> dict[Any, Any]:
    """The answers of those that are quantiles, by (mask, aggregate, window).

    All of a column at once, key by key: the runs of a key are in the cache for its second window, which is found in a
    third of the time then, where there are many keys.
    """
    asked: dict[tuple[Mask, Part, bool], dict[tuple[Aggregate, int], None]] = {}
    for aggregate, route, w in zip(aggregates, routes, which, strict=True):
        if aggregate.kind == "quantile" and route.parts is not None:
            asked.setdefault((route.mask, route.parts[0], aggregate.method == "linear"), {})[aggregate, w] = None
    found: dict[Any, Any] = {}
    for (mask, part, linear), some in asked.items():
        answers = _of_column(one, (mask, part, linear), list(some))
        found |= {(mask, *of): answers[:, i] for i, of in enumerate(some)}
    if any(one.plan.groups[mask.home, part].due() for mask, part, _ in asked):
        one.plan.reconsider()
    return found


def neighbours(one: Located, route: Route, aggregate: Aggregate, edges: Edges) -> Neighbours:
    """Of a quantile: the elements that its rank falls between, and how far."""
    assert route.parts is not None
    lo, hi = edges
    group = one.plan.groups[route.home, route.parts[0]]
    rank, fraction = ranks(aggregate, hi - lo)
    shape = (one.ids.size, 1) if lo.ndim == 1 else lo.shape
    within = np.ascontiguousarray(lo).reshape(shape), np.ascontiguousarray(hi).reshape(shape)
    low, high = group.select(one.rings(route.mask), within, rank.reshape(shape), aggregate.method == "linear")
    both = low.reshape(lo.shape), (high if high.size else low).reshape(lo.shape)
    return Neighbours(*both, fraction, _is_of_times(one, route.parts[0]))


def _of_column(one: Located, asked: tuple[Mask, Part, bool], some: list[tuple[Aggregate, int]]) -> np.ndarray:
    """One column for each."""
    mask, part, linear = asked
    lo, hi = one.chosen(mask, [w for _, w in some])
    rank, fraction = ranks_of(np.array([of.phi for of, _ in some]), some[0][0].method, hi - lo)
    low, high = one.plan.groups[mask.home, part].select(one.rings(mask), (lo, hi), rank, linear)
    return Neighbours(low, high, fraction, _is_of_times(one, part)).between if linear else low


def _is_of_times(one: Located, part: Part) -> bool:
    return bool(pa.types.is_temporal(one.store.types.get(part.columns[0], pa.float64())))
