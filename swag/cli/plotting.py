"""`--plot`: frames as a picture."""

from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swag.durable.atomic_file import reason, replacing, target_of
from swag.files.files import Files
from swag.query.over_frames import frames_package
from swag.tables.columns import column, decoded, decoded_type, is_number
from swag.tables.keys import is_groupable, is_string

PICTURES = (".png", ".svg", ".pdf", ".eps", ".jpg", ".jpeg", ".tif", ".webp")
SAMPLED_EVENTS = 100_000  # events at the beginning of a file, by which it is guessed whether they are of several series


def check_plot(path: Path) -> None:
    """What could not be drawn in the end is refused before anything is read."""
    try:
        import matplotlib
    except ImportError:
        raise click.UsageError('--plot needs matplotlib. Hint: pip install "swag-windows[plot]"') from None
    matplotlib.use("agg")
    if path.suffix.lower() not in PICTURES:
        raise click.UsageError(f'"{path}" ends in none of {", ".join(PICTURES)}. Hint: --plot frames.png')
    try:
        target_of(path)
    except (OSError, ValueError) as why:
        raise _impossible(path, why) from None


def drawn(y: str | None, source: Files, read: list[str], apart: list[str]) -> str:
    """The column to draw: the one that is named, else the first one of numbers that is read.

    apart: ts and the key. Where none has numbers, it is the file's own column of numbers, if there is only one.
    """
    if y is not None:
        column(pa.schema([(name, pa.null()) for name in source.names]).empty_table(), y, "--y is")
        return y
    for names in (read, source.names):
        asked = [name for name in dict.fromkeys(names) if name not in apart and source.names.count(name) == 1]
        found = [each.name for each in source.typed(asked) if is_number(decoded_type(each.type))] if asked else []
        if len(found) == 1 or (found and names is read):
            return found[0]
    has = f"has {', '.join(found)}" if found else "has none, either"
    hint = f"--y {found[0]}" if found else "--y a column of few words, or leave --plot out"
    raise click.UsageError(f"--plot draws numbers: the frames are cut by none, and {source.called} {has}. Hint: {hint}")


def draw(path: Path, found: pa.Table, table: pa.Table, y: str, ts: str) -> None:
    """The frames, over a column: of several keys, each of those with most frames by itself."""
    axes = frames_package().plot(found, table, y=y, ts=ts)
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
    for table in source.batches([ts, *others], SAMPLED_EVENTS) if others else ():
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


def _impossible(path: Path, why: OSError | ValueError) -> click.UsageError:
    return click.UsageError(f'"{path}" can not be drawn: {reason(why)}.')
