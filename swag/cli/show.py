"""Tables and plans as a terminal shows them."""

from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from swag.live.planner import choose
from swag.query.families import parts_of
from swag.query.groupings import by_grouping, shown_by
from swag.query.lowering import lower, simple_ones
from swag.query.over_statement import OverStatement
from swag.query.query import Events, Query
from swag.query.windows import Range

SHOWN = 20
INDEXES = {"count": "CI-COUNT", "sum": "CI-SUM", "max": "CI-MAX", "min": "CI-MIN"}


def preview(tables: list[pa.Table], rows: int) -> None:
    """The first of so many rows, on a terminal."""
    table = pa.concat_tables(tables)
    grid = Table(box=None, header_style="bold")
    for name in table.column_names:
        grid.add_column(name)
    for row in table.slice(0, SHOWN).to_pylist():
        grid.add_row(*("" if value is None else str(value) for value in row.values()))
    console = Console(highlight=False)
    console.print(grid)
    if rows > SHOWN:
        console.print(f"… {rows:,} rows in all. --out answers.parquet writes them.")


def explain(queries: list[Any]) -> str:
    """What statements mean, and which structures their queries would share; no events are needed for that."""
    lines = []
    for query in queries:
        lines.append(f"{query.label}\n    {query}")
        if isinstance(query, Query):
            lines += _notes(query)
        elif isinstance(query, Events):
            lines.append("    gives events as they are: those that it chooses")
        elif isinstance(query, OverStatement):
            lines += _partitions(query)
        else:
            lines.append("    frames are found in one pass over the events, then aggregated from shared structures")
    groups = by_grouping([query for query in queries if isinstance(query, Query)], ())
    for by, some in groups.items():  # each has structures of its own
        lines += [
            "",
            *([f"by {shown_by(by)}"] if len(groups) > 1 else []),
            *_structures(simple_ones(each for each in some if not each.is_relation)),
        ]
    return "\n".join(lines)


def _partitions(statement: OverStatement) -> list[str]:
    lines = ["    one row per event: its windows are answered together, those of a partition over rows sorted once"]
    for partition, calls in statement.by_partition().items():
        windows = dict.fromkeys(str(call.window) for call in calls)
        by = f"PARTITION BY {', '.join(partition)}" if partition else "all events"
        columns, spans = _counted(len(calls), "column"), _counted(len(windows), "window")
        lines.append(f"    {by}: {columns} over {spans}, {_some(list(windows))}")
    return lines


def _notes(query: Query) -> list[str]:
    """Lines below a query in `swag explain`: what it is computed from and reads, and when and for whom it answers."""
    notes = []
    if not query.is_simple and not query.is_relation:
        parts = ", ".join(part.title for part in lower(query).answered)
        notes.append(f"    computed from {parts}")
    if query.source is not None:
        what = "the answers of" if not isinstance(query.source, Events) else "SELECT"
        notes.append(f"    reads {what} {query.source.label} as its stream")
    if query.is_relation:
        notes.append("    answers at each of its ticks, over the relation of all that it says then")
    if query.every is not None:
        notes.append("    answers at ticks only: nothing is aggregated between them")
    if query.having is not None:
        notes.append(f"    {_candidates(query)}")
    return notes


def _candidates(query: Query) -> str:
    """How keys that pass a query's HAVING are found, as `swag explain` says it: by an index, or by checking all."""
    guard = query if query.is_simple else lower(query).guard
    kind = "" if guard is None else guard.aggregate.kind
    suffix = guard is not None and isinstance(guard.window, Range) and guard.window.until == 0
    one_sided = guard is not None and guard.condition is not None and guard.condition.op != "between"
    if not query.by or guard is None or not query.index or kind not in INDEXES or not suffix or not one_sided:
        return "its condition is checked for every key" if query.by else "its condition is checked"
    rest = "" if query.is_simple else f" for {guard.title}; the rest is checked over these alone"
    return f"{INDEXES[kind]} names the keys that may pass{rest}"


def _structures(simple: list[Query]) -> list[str]:
    """One line per structure, as the engine would begin with."""
    groups: dict[tuple[str | None, Any], list[str]] = {}
    free: list[str] = []
    for query in simple:
        parts = parts_of(query.aggregate)
        if not parts and query.title not in free:
            free.append(query.title)
        for part in parts:
            names = groups.setdefault((query.where, part), [])
            if query.title not in names:
                names.append(query.title)
    lines = []
    for (where, part), names in groups.items():
        choice = choose(part, np.dtype(np.float64), "auto")
        rows = "every event" if where is None else f"events where {where}"
        lines.append(f"{part} over {rows}: {choice.structure.name}, update {choice.structure.update_cost}, "
                     f"lookup {choice.structure.lookup_cost}")  # fmt: skip
        lines.append(f"    for {_some(names)}")
    if free:
        lines += ["no structure, only positions:", f"    for {_some(free)}"]
    return lines


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _some(names: list[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (f", … ({len(names)} in all)" if len(names) > most else "")
