"""`--plot`: frames as a picture."""

from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swag.durable.atomic_file import reason, replacing, target_of
from swag.files.files import Files
from swag.query.groupings import By
from swag.query.over_frames import frames_package
from swag.tables.columns import decoded, decoded_type, is_number
from swag.tables.expressions.derived import of_events
from swag.tables.keys import is_groupable, is_string

PICTURES = (".png", ".svg", ".pdf", ".eps", ".jpg", ".jpeg", ".tif", ".webp")
SAMPLE = 100_000  # events at the beginning of a file, by which it is guessed whether they are of several series


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
    """The frames, over the column that they are cut by: of several keys, each of those with most frames by itself."""
    axes = frames_package().plot(found, table, y=_drawn(spec, table), ts=ts)
    figure = np.atleast_1d(np.asarray(axes, object))[0].get_figure(root=True)
    try:
        with replacing(path) as draft:
            figure.savefig(draft.file, format=path.suffix[1:].lower(), dpi=120)
    except (OSError, ValueError) as why:
        raise _impossible(path, why) from None


def say_if_several(source: Files, spec: Any, ts: str) -> None:
    """Without a key all events are one series. Where a column says that they are of several, the user is told."""
    read = {ts, *spec.columns}
    others = [name for name in source.names if name not in read and source.names.count(name) == 1]
    for table in source.batches([ts, *others], SAMPLE) if others else ():
        name, count = series_column(table, ts)
        if name:
            click.echo(
                f'swag: {source.called} has {count:,} values of "{name}", and there is no --key: the picture shows all '
                f"events as one series. Hint: --key {name}",
                err=True,
            )
        return


def series_column(table: pa.Table, ts: str) -> tuple[str, int]:
    """The column whose values look like the names of series, and how many there are; "" where none does.

    It has a few values that come again and again, and is text, or tells apart events of the same time.
    """
    ties = table.num_rows - pc.count_distinct(table[ts]).as_py()
    for name in table.column_names:
        kind = decoded_type(table.schema.field(name).type)
        if name == ts or pa.types.is_floating(kind) or pa.types.is_boolean(kind) or not is_groupable(kind):
            continue
        values = decoded(table[name])
        count = pc.count_distinct(values).as_py()
        if not 2 <= count <= table.num_rows // 2:
            continue
        apart = pa.table({"t": table[ts], "name": values}).group_by(["t", "name"]).aggregate([]).num_rows
        if is_string(kind) or (ties and apart == table.num_rows):
            return name, count
    return "", 0


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
