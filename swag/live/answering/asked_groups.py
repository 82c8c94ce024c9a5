"""What is asked of the groups of a plan: which of them, for which windows, of the rows of which filters."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from swag.live.plan import Plan
from swag.live.planner import Group
from swag.live.space import Mask
from swag.live.structures.routes import Route
from swag.query.kind import Part


class AskedGroup(NamedTuple):
    """A group, and what is asked of it: some windows, of the rows of some masks that lie in its space. narrowed: these
    are not all windows in their order."""

    group: Group
    masks: list[Mask]
    windows: list[int]
    narrowed: bool


def part_of(state: Any, family: str) -> Any:
    """Of what a structure holds: a part. Moments serve who asks for the sum."""
    return state[1] if isinstance(state, tuple) and family == "sum" else state


def in_turn(asked: list[AskedGroup]) -> list[tuple[Mask, Part, list[int]]]:
    """Of what `Request.states` gives one after the other: whose it is, and for which windows."""
    return [(mask, each.group.part, each.windows) for each in asked for mask in each.masks]


def filters_of(routes: Iterable[Route]) -> dict[Mask, list[Mask]]:
    """The masks of queries with a `where`, by the space that their rows lie in."""
    found: dict[Mask, dict[Mask, None]] = {}
    for route in routes:
        if route.mask.where is not None and not route.mask.compared:
            found.setdefault(route.home, {})[route.mask] = None
            found.setdefault(route.presence.home, {})[route.presence] = None
    return {home: list(masks) for home, masks in found.items()}


def asked_parts(plan: Plan, routes: list[Route], which: list[int]) -> list[AskedGroup]:
    """The groups to ask, each for its windows: worked out once for a set of queries. which: the window of each."""
    windows: dict[tuple[Mask, Part, Mask], dict[int, None]] = {}
    for route, window in zip(routes, which, strict=True):
        for part in route.served_by:
            if part.family != "quantile":
                windows.setdefault((route.home, part, route.mask), {})[window] = None
        if route.counted_by is not None and (route.presence.home, route.counted_by) in plan.groups:
            windows.setdefault((route.presence.home, route.counted_by, route.presence), {})[window] = None
    together: dict[tuple[Mask, Part, tuple[int, ...]], list[Mask]] = {}
    for (home, part, mask), own in windows.items():
        together.setdefault((home, part, tuple(own)), []).append(mask)
    every = tuple(range(max(which, default=-1) + 1))
    return [AskedGroup(plan.groups[home, part], masks, list(own), own != every)
            for (home, part, own), masks in together.items()]  # fmt: skip
