"""`engine.explain()`: what shares what, the structure chosen for each group, what it costs, and why."""

from typing import TYPE_CHECKING, Any

from swag.live.key_filters import NAMES
from swag.live.planner import Group
from swag.query.lowering import lower
from swag.query.query import HIDDEN, Query

if TYPE_CHECKING:
    from swag.engine import Engine


class Text(str):
    """Text that a prompt or a notebook shows as lines, not in quotes with "\\n" in them."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


def explain(engine: "Engine") -> str:
    engine._plan.settle()
    engine._filters.prepare()
    stats = engine.stats()
    store, plan = engine._store, engine._plan
    stream = f'one stream per "{engine.key}"' if engine.key else "one stream"
    lines = [
        f'{len(engine.queries)} queries over {stream}, ordered by "{engine.ts}"; algorithm: {engine.algorithm}',
        f"{stats['events']:,} events seen, {stats['kept']:,} kept, {stats['keys']:,} keys, {_size(stats['bytes'])}",
    ]
    if not store.events:
        return "\n".join([*lines, "No events yet: structures are chosen when the columns are known."])
    looked_up = [query for query in engine.queries if query.every is None and query.source is None]
    for group in plan.groups.values():
        lines += ["", *_group(group)]
    free = [query.label for query in plan.queries.values() if query.aggregate.kind in ("count", "first", "last")]
    if free:
        lines += [
            "",
            f"positions: {_names(free)}",
            "    no structure: counts and ends are read off the window's edges, O(1)",
        ]
    filters = engine._filters.explain(looked_up)
    lines += ["", *filters] if filters else []
    combined = [line for query in looked_up if not query.is_simple for line in _combined(engine, query)]
    lines += ["", *combined] if combined else []
    lines += engine._emission.explain()
    answers, structures = many(len(looked_up), "answer"), many(len(plan.groups), "structure")
    lines += ["", f"{answers} from {structures}"]
    return "\n".join(lines)


def _group(group: Group) -> list[str]:
    structure = group.structure
    rows = group.space.label()
    return [
        f"{group.part} over {rows}: {_names(group.queries)}",
        f"    {structure.name}: update {structure.update_cost}, lookup {structure.lookup_cost}, "
        f"{_size(structure.bytes)}",
        f"    because: {group.reason}",
        f"    so far: {structure.updates:,} updates, {structure.lookups:,} lookups",
    ]


def _combined(engine: "Engine", query: Query) -> list[str]:
    """How a query over an expression is computed, and which keys it looks at."""
    lowered = lower(query)
    parts = [part.title for part in lowered.answered]
    lines = [f"combined {query.label}: from {', '.join(parts)}"]
    if query.having is None:
        return lines
    if lowered.guard is None or (why := engine._filters.why_not(lowered.guard)):
        why = why if lowered.guard is not None else "index=False" if not query.index else "no condition with an index"
        return [*lines, f"    filter: every key is looked at ({why})"]
    index, guard = NAMES[lowered.guard.aggregate.kind], lowered.guard.title
    return [*lines, f"    filter: {index} names the candidates for {guard}; the rest is checked over these alone"]


def _names(names: list[str], most: int = 4) -> str:
    shown = ", ".join(name.removeprefix(HIDDEN) for name in names[:most])
    return f"{shown}{', …' if len(names) > most else ''} ({many(len(names), 'query')})"


def many(count: int, what: str) -> str:
    """How many of something: 1 query, 2 queries."""
    plural = what[:-1] + "ies" if what == "query" else what + "s"
    return f"{count:,} {what if count == 1 else plural}"


def _size(count: float) -> str:
    for unit in ("B", "KB", "MB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GB"
