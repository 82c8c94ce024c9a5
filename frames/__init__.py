"""frames: data-driven windows, a part of swag. Segments of a stream that its own values delimit.

    >>> import frames as fr, swag as sw
    >>> reports = {"ts": [1, 2, 3, 4, 5], "drop_pct": [0.1, 0.4, 0.5, 0.4, 0.2], "packets": [10, 20, 30, 40, 50]}
    >>> found = fr.detect(fr.Threshold("drop_pct", ">", 0.3), reports)
    >>> fr.summarize(found, reports, [sw.mean("packets")]).to_pylist()
    [{'frame_id': 0, 'start': 2, 'end': 4, 'rows': 3, 'mean(packets)': 30.0}]

They are found (fr.detect, fr.Detector), filled with events (fr.fill, fr.Filler) and summarised (fr.summarize).

Rooms, each of which needs only those above it:

patterns    what a pattern means: its text, its automaton, its conditions
specs       what a frame is: the kinds of frames as frozen values
scans       how the frames of each kind are found, in one pass over events
finding     from events to frames: reading, ordering, waiting, numbering, what is remembered between punctuations
owning      which events are a frame's own: fingerprints of streams, frames and events on one clock
continuous  queries over frames while events come, in an engine: what is said of a frame grows with it
space       frames of keys that lie next to each other, joined into episodes
pictures    frames as pictures
spark       the same over Spark's DataFrames, stored (batch) and streaming (streams)
"""

from typing import TYPE_CHECKING, NoReturn

from frames import metrics, theory
from frames.detection import detect
from frames.detector import Detector
from frames.filler import Filler
from frames.filling import fill, summarize
from frames.pictures.plotting import plot
from frames.query import FrameQuery
from frames.space.connecting import connect, episodes
from frames.specs import Aggregate, Between, Boundary, Custom, Delta, Pattern, Session, State, Threshold
from frames.tables import united
from swag.errors import nearest

__all__ = [
    "Aggregate", "Between", "Boundary", "Custom", "Delta", "Detector", "Filler", "FrameQuery", "Pattern", "Session",
    "State", "Threshold", "connect", "detect", "episodes", "fill", "metrics", "plot", "summarize", "theory", "united",
]  # fmt: skip


if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        hint = nearest(name, __all__, 0.75).replace('"', "")
        raise AttributeError(f'frames has no "{name}".' + f" Hint: fr.{hint}" * bool(hint), name=name)


def __dir__() -> list[str]:
    """What is public, and nothing else."""
    return [*__all__, "__doc__"]
