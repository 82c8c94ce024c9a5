"""Frames of several scans as one list: by the event that made them certain, column by column, on all cores."""

import numpy as np

from frames.finding.intake import in_parallel
from frames.scans.scan import Scan
from kernels.frames import order as frame_order
from kernels.frames.framing import AT, BEGIN, KEY
from swag.tables.columns import room

Placed = tuple[np.ndarray, np.ndarray]  # slots of a scan's frames, and where in the list each goes


def numbered(scans: list[Scan], instants: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Columns of all frames in order: KEY … AT, and those beside, leads among them and, of open extents, endless."""
    total, first = sum(each.count for each in scans), scans[0]
    late = first.ends_late and any(each.count and each.frames[-1, AT] < 0 for each in scans)  # they are the last ones
    fields = room((AT + 2) * total, np.int64).reshape(AT + 2, total)
    known = (*first.reported, *["endless"] * first.lengths.open)
    beside = {name: _columns(getattr(first, name), total) for name in known}

    def write(scan: Scan, placed: Placed) -> None:
        frame_order.scatter(scan.frames, *placed, scan.share.parts.bit_length() - 1, scan.share.part, fields)
        for name, columns in beside.items():
            own = getattr(scan, name)
            frame_order.put(own.reshape(own.shape[0], columns.shape[0]), *placed, columns)

    lists = _with_late_ones(scans, instants) if late else _by_certainty(scans, instants)
    in_parallel(lambda task: write(*task), zip(scans, lists, strict=True))
    return fields[: AT + 1], beside | {"leads": fields[AT + 1 :]}


def _columns(array: np.ndarray, size: int) -> np.ndarray:
    wide = 1 if array.ndim == 1 else array.shape[1]
    return room(wide * size, array.dtype).reshape(wide, size)


def _by_certainty(scans: list[Scan], instants: np.ndarray) -> list[Placed]:
    """By (ts, arrival). Slots are in order of arrival, which often is that of time."""

    def listed(scan: Scan) -> tuple[np.ndarray, ...]:
        sure, slots = room(scan.count, np.int64), np.arange(scan.count)
        if not frame_order.certainty(scan.frames, instants, sure):
            frame_order.sort(sure, slots)
        return sure, slots, scan.frames

    lists = in_parallel(listed, scans)

    def placed(own: tuple[np.ndarray, ...]) -> Placed:
        places = np.arange(own[1].size)
        for other in lists:
            if other is not own:
                frame_order.add_ranks(own, other, places)
        return own[1], places

    return in_parallel(placed, lists)


def _with_late_ones(scans: list[Scan], instants: np.ndarray) -> list[Placed]:
    """Frames that became certain only when the stream had ended come last."""
    frames = np.concatenate([each.frames for each in scans])
    ids = np.concatenate([each.frames[:, KEY] * each.share.parts + each.share.part for each in scans])
    late, at = frames[:, AT] < 0, frames[:, AT]
    order = np.lexsort((ids * late, np.where(late, frames[:, BEGIN], at), np.where(late, 0, instants[at]), late))
    places = np.empty_like(order)
    places[order] = np.arange(order.size)
    parts = np.split(places, np.cumsum([each.count for each in scans])[:-1])
    return [(np.arange(part.size), part) for part in parts]
