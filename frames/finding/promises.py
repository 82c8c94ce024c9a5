"""Punctuations that travel on: up to when the frames of a detector are known, by their starts and by their ends.

      open          5 . . 8          punctuated up to 9: a frame that starts at 5 is still to come, and may end with 8
      promised      4                no frame that starts by then is still to come
      promised_end  7                nor one that ends by then

What reads frames in their order, a filler or a join, can let go of what only earlier ones could have to do with (Maier
et al. 2012, section 4.1.2). Pieces of frames that are certain come as soon as their events do: these hold nothing back.
"""

import numpy as np

from frames.finding.core import DetectorCore
from frames.finding.intake import START_OF_TIME
from kernels.frames.framing import BEGIN, GAP_END, GAP_ROWS, GAP_START, LAST, ROWS, SLOT, START


def promised(core: DetectorCore) -> int | None:
    """The latest t such that no frame, or piece of one, with start <= t is still to come. None: there is none."""
    held = [] if core.held is None else [np.array([core.held])]
    if core.scan is not None and not core.fragments:  # some wait for the next event to know their end
        held.append(core.scan.frames[:, BEGIN])
    if core.ends is not None:
        held.append(core.ends.starts())
    return _before(core, START, GAP_START, held)


def promised_end(core: DetectorCore) -> int | None:
    """The same of frames, or pieces, with end <= t: what is open ends no earlier than with its latest event."""
    return _before(core, LAST, GAP_END, [_ends_held(core)])


def _before(core: DetectorCore, of_runs: int, of_gaps: int, held: list[np.ndarray]) -> int | None:
    """The latest time before the runs and gaps that may still be reported, by a field of their keys, and no later than
    the latest punctuation."""
    if core.upto is None or core.scan is None:
        return None
    keyed = core.scan.keyed
    runs = (keyed[:, ROWS] > 0) & (keyed[:, SLOT] < 0) if core.fragments else keyed[:, ROWS] > 0
    gaps = [] if core.fragments else [keyed[keyed[:, GAP_ROWS] > 0, of_gaps]]
    first = [int(each.min()) - 1 for each in (keyed[runs, of_runs], *gaps, *held) if each.size]
    t = min([int(core.upto), *first])
    return None if t < START_OF_TIME else t


def _ends_held(core: DetectorCore) -> np.ndarray:
    """With fragments: where gaps have got to, some of which are held back."""
    if core.held is None or core.scan is None:
        return np.zeros(0, np.int64)
    keyed = core.scan.keyed
    return keyed[keyed[:, GAP_ROWS] > 0, GAP_END]
