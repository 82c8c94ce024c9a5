"""`--plot`: frames as a picture."""

from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swag.durable.atomic_file import reason, replacing, target_of
from swag.query.over_frames import frames_package

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
        raise click.UsageError("--plot has no column to draw: the frames are cut by COUNT(*). Hint: leave it out")
    try:
        target_of(path)
    except (OSError, ValueError) as why:
        raise _impossible(path, why) from None


def draw(path: Path, found: pa.Table, table: pa.Table, spec: Any, ts: str, key: str | None) -> None:
    """The frames of the key that has most of them, over the column that they are cut by."""
    plot = frames_package().plot

    picked = None
    if key is not None and found.num_rows:
        counts = pc.value_counts(found[key])
        picked = key, counts[int(np.argmax(counts.field("counts").to_numpy()))]["values"].as_py()
    axes = plot(found, table, y=spec.columns[0], ts=ts, key=picked)
    try:
        with replacing(path) as draft:
            axes.get_figure(root=True).savefig(  # type: ignore[union-attr]
                draft.file, format=path.suffix[1:].lower(), dpi=120
            )
    except (OSError, ValueError) as why:
        raise _impossible(path, why) from None


def _impossible(path: Path, why: OSError | ValueError) -> click.UsageError:
    return click.UsageError(f'"{path}" can not be drawn: {reason(why)}.')
