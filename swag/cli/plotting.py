"""`--plot`: frames as a picture."""

from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa

from swag.durable.atomic_file import reason, replacing, target_of
from swag.query.groupings import By
from swag.query.over_frames import frames_package
from swag.tables.columns import decoded_type, is_number
from swag.tables.expressions.derived import of_events

PICTURES = (".png", ".svg", ".pdf", ".eps", ".jpg", ".jpeg", ".tif", ".webp")


def check_plot(path: Path, spec: Any) -> None:
    """What could not be drawn in the end is refused before anything is read."""
    try:
        import matplotlib
    except ImportError:
        raise click.UsageError('--plot needs matplotlib. Hint: pip install "swag-windows[plot]"') from None
    matplotlib.use("agg")
    if path.suffix.lower() not in PICTURES:
        raise click.UsageError(f'"{path}" ends in none of {", ".join(PICTURES)}. Hint: --plot frames.png')
    if not spec.columns:
        raise click.UsageError("--plot has no column to draw: the frames are cut by none. Hint: leave it out")
    try:
        target_of(path)
    except (OSError, ValueError) as why:
        raise _impossible(path, why) from None


def draw(path: Path, found: pa.Table, table: pa.Table, spec: Any, ts: str, key: By) -> None:
    """The frames of the key that has most of them, over the column that they are cut by."""
    plot = frames_package().plot

    picked = None
    if key and found.num_rows:
        places = [str(i) for i in range(len(key))]  # of the columns: names may be anything
        counts = found.select(list(key)).rename_columns(places).group_by(places, use_threads=False)
        counts = counts.aggregate([([], "count_all")])
        most = int(np.argmax(counts["count_all"].to_numpy()))
        picked = key, tuple(counts[place][most].as_py() for place in places)
    axes = plot(found, table, y=_drawn(spec, table), ts=ts, key=picked)
    try:
        with replacing(path) as draft:
            axes.get_figure(root=True).savefig(  # type: ignore[union-attr]
                draft.file, format=path.suffix[1:].lower(), dpi=120
            )
    except (OSError, ValueError) as why:
        raise _impossible(path, why) from None


def _drawn(spec: Any, table: pa.Table) -> str:
    """The column that frames are cut by; of those that a predicate reads, the first one that has numbers."""
    read = of_events(dict.fromkeys(spec.columns, "the plot shows"), spec.texts, table.column_names)
    drawn = [name for name in read if is_number(decoded_type(table.schema.field(name).type))]
    if not drawn:
        names = ", ".join(read)
        raise click.UsageError(f"--plot has no column of numbers to draw: the frames are cut by {names}.")
    return drawn[0]


def _impossible(path: Path, why: OSError | ValueError) -> click.UsageError:
    return click.UsageError(f'"{path}" can not be drawn: {reason(why)}.')
