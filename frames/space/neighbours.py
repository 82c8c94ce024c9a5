"""Which keys lie next to each other: what users say of it, as pairs of the ids of keys that have frames."""

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from swag.errors import BadQuery, BadType, SwagError
from swag.query.groupings import By
from swag.tables.columns import as_table, decoded_type, is_discrete
from swag.tables.keys import KeyTable, is_string

HINT = '[("r1", "r2"), ("r2", "r3")], a table or an array of pairs, {"r1": ["r2"]}, "sides" or "corners"'
MOST_DIMENSIONS = 4  # dimensions of a grid: a cell has 80 neighbours in as many


def neighbouring(neighbours: Any, by: By, keys: KeyTable) -> np.ndarray:
    """Pairs of ids, a row each, each pair once; keys without frames are left out."""
    if isinstance(neighbours, str):
        pairs = _in_grid(neighbours, by, keys)
    else:
        columns = _columns(neighbours, by, keys)
        columns = [_alike(*each) for each in zip(columns, keys.types * 2, by * 2, strict=False)]
        halves = (keys.find_any(columns[at : at + len(by)], by) for at in (0, len(by)))
        pairs = np.stack(list(halves), 1)
    pairs = np.sort(pairs[(pairs >= 0).all(1)].astype(np.int64), 1)
    return np.unique(pairs, axis=0) if pairs.size else pairs.reshape(0, 2)


def _columns(neighbours: Any, by: By, keys: KeyTable) -> list[pa.ChunkedArray]:
    """The columns of one key, then those of the other."""
    if isinstance(neighbours, Mapping):
        neighbours = [(key, other) for key, others in neighbours.items() for other in _each(others, by)]
    if isinstance(neighbours, np.ndarray) and neighbours.ndim > 1 and neighbours[:1].size in (0, 2 * len(by)):
        return [pa.chunked_array([pa.array(each)]) for each in neighbours.reshape(-1, 2 * len(by)).T]
    if isinstance(neighbours, list | tuple | set | frozenset):
        rows = [_row(pair, by) for pair in neighbours]
        values = list(zip(*rows, strict=True)) or [()] * (2 * len(by))
        return [_column(*each) for each in zip(values, keys.types * 2, strict=True)]
    try:
        table = as_table(neighbours)
    except SwagError:
        raise BadQuery(f"neighbours={neighbours!r} does not say which keys lie next to each other.", HINT) from None
    if table.num_columns < 2 * len(by):
        raise BadQuery(
            f"a table of neighbours has {len(by)} columns for one key and as many for the other; "
            f"this one has: {', '.join(table.column_names)}.",
            HINT,
        )
    return [table.column(i) for i in range(2 * len(by))]


def _column(values: tuple[Any, ...], kind: pa.DataType) -> pa.ChunkedArray:
    """Of the type that Arrow finds for the values; it finds none for numbers beyond int64, which keys may be."""
    for known in (None, kind):
        try:
            return pa.chunked_array([pa.array(list(values), known)])
        except (pa.ArrowException, OverflowError):
            pass
    raise BadQuery("the neighbours are of several types.", HINT)


def _alike(column: pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.ChunkedArray:
    """In the type of the keys, if all values have one there; a KeyTable would look at others one by one.

    Keys that no frame has are left out, but values of another sort are a mistake.
    """
    if column.null_count < len(column) and _sort(column.type) != _sort(kind):
        value = next(each for each in column.to_pylist() if each is not None)
        raise BadType(f'{value!r} is no neighbour: "{name}" of the frames is {kind}.', HINT)
    try:
        return column if column.type == kind else column.cast(kind)
    except pa.ArrowException:
        return column


def _sort(kind: pa.DataType) -> str:
    """Types whose values are compared with each other."""
    kind = decoded_type(kind)
    if is_string(kind):
        return "text"
    numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return "numbers" if numbers else "times" if pa.types.is_temporal(kind) else str(kind)


def _each(others: Any, by: By) -> Iterable[Any]:
    """The neighbours of one key: several, or one."""
    alone = isinstance(others, str) or not isinstance(others, Iterable)
    if len(by) > 1 and isinstance(others, tuple) and not any(isinstance(each, tuple | list) for each in others):
        alone = True
    return [others] if alone else others


def _row(pair: Any, by: By) -> list[Any]:
    """The values of both keys."""
    halves = list(pair) if isinstance(pair, list | tuple | set | frozenset) else []
    parts = [[each] if len(by) == 1 else list(each) if isinstance(each, list | tuple) else [] for each in halves]
    if len(parts) != 2 or any(len(part) != len(by) for part in parts):
        key = "a key" if len(by) == 1 else f"a key of {len(by)} values ({', '.join(by)})"
        raise BadQuery(f"{pair!r} is no pair of neighbours, each {key}.", HINT)
    return parts[0] + parts[1]


def _in_grid(which: str, by: By, keys: KeyTable) -> np.ndarray:
    """Pairs of cells that share a side, or at least a corner: each cell is looked up one step on in each direction."""
    if which not in ("sides", "corners"):
        raise BadQuery(f'neighbours="{which}" is neither "sides" nor "corners".', HINT)
    for name, kind in zip(by, keys.types, strict=True):
        if not is_discrete(kind) or not pa.types.is_integer(kind):
            raise BadQuery(f'cells are told by whole numbers, but "{name}" is {kind}.', HINT)
    if len(by) > MOST_DIMENSIONS:
        raise BadQuery(f"a grid has at most {MOST_DIMENSIONS} dimensions, not {len(by)}.", HINT)
    every = keys.column()
    parts = [every] if len(by) == 1 else every.flatten()
    cells, ids = [np.asarray(part) for part in parts], np.arange(keys.count)
    found = [np.zeros((0, 2), np.int64)]
    for step in _steps(which, len(by)):
        moved = [_moved(cell, by_much) for cell, by_much in zip(cells, step, strict=True)]
        inside = np.logical_and.reduce([(m > c) == (d > 0) for m, c, d in zip(moved, cells, step, strict=True)])
        columns = [pa.chunked_array([pa.array(m)]) for m in moved]
        found.append(np.stack([ids, np.where(inside, keys.find_any(columns, by), -1)], 1))
    return np.concatenate(found)


def _moved(cell: np.ndarray, by: int) -> np.ndarray:
    """In the type of the keys, where the last number is followed by the first: that is no neighbour, and found out."""
    one = cell.dtype.type(1)
    return np.asarray(cell + one if by > 0 else cell - one if by < 0 else cell)


def _steps(which: str, dimensions: int) -> list[tuple[int, ...]]:
    """From a cell to half of its neighbours; it is the neighbour of the other half."""
    every = itertools.product((0, 1, -1), repeat=dimensions)
    forward = [step for step in every if any(step) and next(each for each in step if each) > 0]
    return [step for step in forward if which == "corners" or sum(map(abs, step)) == 1]
