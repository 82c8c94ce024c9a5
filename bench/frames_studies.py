"""The studies of both papers on frames: what windows and samples lose. Tables are printed, figures drawn into docs/.

python -m bench.frames_studies [episodes fragments scatter histogram heatmap picture] [--quick]
       [--traffic traffic.parquet] [--casts casts.parquet] [--trades trades.parquet] [--figures docs]
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa

import frames as fr
import swag as sw
from bench import frames_data
from bench.report import Report, Table, plain
from bench.timing import best_of, cpu_clock
from frames import metrics

SECONDS = (60, 120, 180, 240, 300, 480, 720, 960)
TUPLES = (5, 10, 20, 30, 45, 60, 90, 120)
COLOURS = {"min": "#274060", "max": "#c1121f", "avg": "#2a9d8f"}


def episodes(report: Report, args: argparse.Namespace) -> None:
    """Threshold frames against tumbling windows picked by min, max or avg (Maier et al. 2012, figures 3-11)."""
    for name, table in frames_data.traffic(args.traffic, args.quick).items():
        widths = (
            SECONDS if args.traffic is None else tuple(10 * w for w in SECONDS)
        )  # the real detectors report every 5 minutes
        spec = fr.Threshold(
            "speed", "<", 40 if args.traffic is None else 60, min_duration=180 if args.traffic is None else 900
        )
        _episodes(report, args, f"traffic {name}", spec, table, widths, "seconds")
    for name, table in list(frames_data.casts(args.casts, args.quick).items())[:2]:
        cut = 0.2 if args.casts is None else float(np.quantile(np.asarray(table["dye"]), 0.9))
        for rows in (20, 1):
            spec = fr.Threshold("dye", ">", round(cut, 3), min_rows=rows)
            _episodes(report, args, f"dye {name}, at least {rows} tuples", spec, table, TUPLES, "tuples")


def _episodes(
    report: Report, args: argparse.Namespace, name: str, spec: fr.Threshold, table: pa.Table, widths: Any, unit: str
) -> None:
    frames = fr.detect(spec, table)
    inside = int(np.asarray(frames["rows"]).sum())
    rows: list[list[Any]] = []
    errors: dict[str, list[tuple[float, float, float]]] = {h: [] for h in COLOURS}
    for width in widths:
        for heuristic in COLOURS:
            _, taken = metrics.tumbling_windows(spec, table, width, heuristic)
            wrong = metrics.duration_error(frames, taken, table)
            missed, false = metrics.existence_error(frames, taken)
            share = (100 * missed / max(frames.num_rows, 1), 100 * false / max(taken.num_rows, 1))
            errors[heuristic].append((wrong, *share))
            rows.append(
                [
                    width,
                    heuristic,
                    wrong,
                    round(100 * wrong / inside, 1) if inside else "",
                    round(share[0], 1),
                    round(share[1], 1),
                ]
            )
    _, axes = plt.subplots(1, 3, figsize=(11, 3), layout="constrained")
    for ax, i, title in zip(
        axes, range(3), ("duration error (events)", "missed frames (%)", "false windows (%)"), strict=True
    ):
        for heuristic, colour in COLOURS.items():
            ax.plot(widths, [e[i] for e in errors[heuristic]], "o-", ms=3, color=colour, label=heuristic)
        if i == 0:
            ax.axhline(inside, color="black", lw=1, label="events in frames")
            ax.legend(fontsize=8)
        ax.set_title(title, fontsize=10)
        ax.set_xlabel(f"window ({unit})")
    figure = _save(args, f"episodes_{name.split(',')[0]}_{spec.min_rows}")
    header = [
        f"window ({unit})",
        "heuristic",
        "duration error",
        "% of events in frames",
        "missed frames %",
        "false windows %",
    ]
    title = f"{name}: {frames.num_rows:,} frames, {inside:,} of {table.num_rows:,} events in them"
    report.tables.append(Table(title, header, rows, figure))


def fragments(report: Report, args: argparse.Namespace) -> None:
    """The tuple buffer of a Filler, with and without fragments (Maier et al. 2012, tables 1 and 2)."""
    name, table = next(iter(frames_data.casts(args.casts, args.quick).items()))
    cut = 0.2 if args.casts is None else float(np.quantile(np.asarray(table["dye"]), 0.5))
    rows: list[list[Any]] = []
    for least in (1, 20):
        for pieces in (False, True):
            spec = fr.Threshold("dye", ">", round(cut, 3), min_rows=least)
            sizes, filled, seconds = _feed(spec, table, pieces, every=200)
            rows.append(
                [
                    least,
                    "yes" if pieces else "no",
                    max(sizes),
                    round(float(np.mean(sizes)), 0),
                    filled,
                    round(seconds, 2),
                ]
            )
    header = ["at least", "fragments", "buffer, most", "buffer, mean", "tuples filled", "seconds"]
    report.tables.append(
        Table(f"dye {name} > {cut:.3g}: tuples waiting in the Filler, a punctuation every 200", header, rows)
    )


def _feed(spec: fr.Threshold, table: pa.Table, pieces: bool, every: int) -> tuple[list[int], int, float]:
    detector, filler = fr.Detector(spec, fragments=pieces), fr.Filler()
    sizes, filled, start = [], 0, time.perf_counter()
    for at in range(0, table.num_rows, every):
        part = table.slice(at, every)
        upto = part["ts"][-1].as_py()
        filled += filler.push_events(part).num_rows
        sizes.append(filler.buffered)
        detector.push(part)
        filled += filler.push_frames(detector.punctuate(upto)).num_rows
        filler.punctuate_frames(detector.promised)
        filler.punctuate_events(upto)
    filled += filler.push_frames(detector.finish()).num_rows
    return sizes, filled, time.perf_counter() - start


def scatter(report: Report, args: argparse.Namespace) -> None:
    """A scatter plot from few points: delta frames, windows, samples (Grossniklaus et al. 2016, tables 1 and 2)."""
    rows: list[list[Any]] = []
    streams = [(f"dye {n}", t, "depth", "dye", 0.05) for n, t in frames_data.casts(args.casts, args.quick).items()]
    streams += [(f"price {n}", t, "ts", "price", 0.05) for n, t in frames_data.trades(args.trades).items()]
    figure = None
    for name, table, x, y, delta in streams:
        frames = fr.detect(fr.Delta(y, delta), table)
        means = [sw.mean(x).alias("mx"), sw.mean(y).alias("my")]
        points = {"frames": _xy(fr.summarize(frames, table, means))}
        each = max(table.num_rows // frames.num_rows, 1)
        points["windows"] = _averaged(table, x, y, each)
        points["samples"] = tuple(np.asarray(table[c], np.float64)[::each] for c in (x, y))
        full = tuple(np.asarray(table[c], np.float64) for c in (x, y))
        extent = (full[0].min(), full[0].max(), full[1].min(), full[1].max())
        for grid in (25, 50, 100):
            truth = metrics.bitmap(*full, grid, extent)
            away = [
                metrics.jaccard_distance(truth, metrics.bitmap(*points[p], grid, extent))
                for p in ("frames", "windows", "samples")
            ]
            rows.append(
                [
                    name,
                    delta,
                    points["frames"][0].size,
                    points["windows"][0].size,
                    points["samples"][0].size,
                    grid,
                    *(f"{a:.3f}" for a in away),
                ]
            )
        if figure is None:
            figure = _draw_scatter(args, name, x, full, points)
    header = [
        "stream",
        "delta",
        "frames",
        "windows",
        "samples",
        "grid",
        "Jaccard frames",
        "Jaccard windows",
        "Jaccard samples",
    ]
    report.tables.append(Table("scatter plots from few points: distance to the plot of all", header, rows, figure))


def _xy(summary: pa.Table) -> tuple[np.ndarray, ...]:
    return np.asarray(summary["mx"]), np.asarray(summary["my"])


def _averaged(table: pa.Table, x: str, y: str, each: int) -> tuple[np.ndarray, ...]:
    which = np.arange(table.num_rows) // each
    return tuple(np.bincount(which, np.asarray(table[c], np.float64)) / np.bincount(which) for c in (x, y))


def _draw_scatter(args: argparse.Namespace, name: str, x_label: str, full: Any, points: dict[str, Any]) -> Path:
    _, axes = plt.subplots(1, 4, figsize=(12, 3), layout="constrained", sharex=True, sharey=True)
    for ax, (title, (x, y)) in zip(axes, {"all events": full, **points}.items(), strict=True):
        ax.plot(x, y, ".", ms=1, color="#274060", rasterized=True)
        ax.set_title(f"{title}: {x.size:,}", fontsize=10)
        ax.set_xlabel(x_label)
    axes[0].set_ylabel(name)
    return _save(args, f"scatter_{name}")


def histogram(report: Report, args: argparse.Namespace) -> None:
    """Dye by density: depth slices, two-predicate delta frames, windows (Grossniklaus et al. 2016, section 4.2)."""
    rows: list[list[Any]] = []
    figure = None
    for name, table in frames_data.casts(args.casts, args.quick).items():
        depth, temperature = (np.asarray(table[c], np.float64) for c in ("depth", "temperature"))
        density = 25 - 0.15 * (temperature - 10) + 0.0045 * depth  # linear; enough to bin by
        step = np.abs(np.diff(depth, prepend=depth[0]))
        table = table.append_column("density", pa.array(density)).append_column("step", pa.array(step))
        edges = np.linspace(density.min(), density.max(), 41)
        slices = fr.detect(fr.Boundary("depth", float(10 * np.median(step))), table)
        truth = _mass(slices, table, edges)
        x = _tuned(table, density, slices.num_rows // 10)
        frames = fr.detect(
            fr.Delta({"density": x, "dye": 2 * x * float(np.ptp(np.asarray(table["dye"])) / np.ptp(density))}), table
        )
        windows = fr.detect(fr.Aggregate(sw.count(), ">=", max(table.num_rows // frames.num_rows, 1)), table)
        by_frames, by_windows = _mass(frames, table, edges), _mass(windows, table, edges)
        away = metrics.earth_movers_distance(truth, by_frames), metrics.earth_movers_distance(truth, by_windows)
        rows.append(
            [
                name,
                slices.num_rows,
                frames.num_rows,
                windows.num_rows,
                round(float(truth.sum()), 1),
                round(away[0], 2),
                round(away[1], 2),
                round(1 - away[0] / away[1], 2),
            ]
        )
        if figure is None:
            figure = _draw_histogram(args, edges, {"depth slices": truth, "frames": by_frames, "windows": by_windows})
    header = ["cast", "slices", "frames", "windows", "dye", "EMD frames", "EMD windows", "1 - frames / windows"]
    report.tables.append(Table("dye by density, from a tenth of the segments", header, rows, figure))


def _tuned(table: pa.Table, density: np.ndarray, wanted: int) -> float:
    """The density step that gives about as many frames as wanted; the dye step is twice that, in units of its range."""
    low, high = 1e-6 * np.ptp(density), float(np.ptp(density))
    scale = 2 * float(np.ptp(np.asarray(table["dye"])) / np.ptp(density))
    for _ in range(30):
        middle = float(np.sqrt(low * high))
        found = fr.detect(fr.Delta({"density": middle, "dye": scale * middle}), table).num_rows
        low, high = (middle, high) if found > wanted else (low, middle)
    return high


def _mass(segments: pa.Table, table: pa.Table, edges: np.ndarray) -> np.ndarray:
    """Mean dye of a segment times the way it goes up or down, in the bin of its mean density."""
    summary = fr.summarize(segments, table, [sw.mean("dye"), sw.sum("step"), sw.mean("density")])
    mass = np.asarray(summary["mean(dye)"]) * np.asarray(summary["sum(step)"])
    return np.histogram(np.asarray(summary["mean(density)"]), edges, weights=mass)[0]


def _draw_histogram(args: argparse.Namespace, edges: np.ndarray, masses: dict[str, np.ndarray]) -> Path:
    _, axes = plt.subplots(1, 3, figsize=(11, 2.6), layout="constrained", sharey=True)
    for ax, (title, mass) in zip(axes, masses.items(), strict=True):
        ax.stairs(mass, edges, fill=True, color="#2a9d8f")
        ax.set_title(title, fontsize=10)
        ax.set_xlabel("density - 1000")
        ax.locator_params(axis="x", nbins=5)
    return _save(args, "histogram")


def heatmap(report: Report, args: argparse.Namespace) -> None:
    """Where players were: grid frames, and windows of 100 … 10 % of the slide (Grossniklaus et al. 2016, fig. 6, 9)."""
    count, seconds = (4, 120) if args.quick else (16, 900)
    table = frames_data.players(count, seconds)
    rows: list[list[Any]] = []
    _, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
    for ax, (window, slide) in zip(axes, ((60, 1), (300, 10)), strict=True):
        if window > seconds:
            window = seconds // 2
        maps = Maps(table, count, seconds, window, slide)
        truth = maps.of_events()
        fr.detect(maps.grid, table.slice(0, 1000), key="player")  # compiled before it is timed
        tried: dict[str, Callable[[], np.ndarray]] = {"frames": maps.of_frames}
        tried |= {f"{share} % windows": partial(maps.of_windows, slide * 10 * share) for share in (100, 50, 20, 10)}
        for name, compute in tried.items():
            taken, error = best_of(compute, 3, cpu_clock), metrics.rms_error(compute(), truth)
            rows.append([f"{window}s / {slide}s", name, f"{error:.2e}", round(taken, 3)])
            ax.plot(taken, error, "s" if name == "frames" else "o", color="#c1121f" if name == "frames" else "#274060")
            ax.annotate(name, (taken, error), fontsize=7, xytext=(4, 3), textcoords="offset points")
        ax.set_title(f"{window} s maps every {slide} s", fontsize=10)
        ax.set_xlabel("CPU seconds")
        ax.locator_params(axis="x", nbins=5)
        ax.set_ylabel("RMS error")
        ax.margins(0.25)
        ax.set_ylim(bottom=-0.04 * ax.get_ylim()[1])
    figure = _save(args, "heatmap")
    report.tables.append(
        Table(
            f"heat maps of {count} players, {table.num_rows:,} positions",
            ["scheme", "by", "RMS error", "CPU seconds"],
            rows,
            figure,
        )
    )


class Maps:
    """Heat maps of the last `window` seconds, every `slide` seconds: time per player and cell (16 x 25)."""

    def __init__(self, table: pa.Table, count: int, seconds: int, window: int, slide: int) -> None:
        self.table, self.count, self.slots, self.per_map, self.slide = (
            table,
            count,
            seconds // slide,
            window // slide,
            slide * 1000,
        )
        self.grid = fr.Boundary({"x": 4.25, "y": 4.2})
        self.ts, self.player, self.x, self.y = (np.asarray(table[c]) for c in ("ts", "player", "x", "y"))

    def _maps(
        self, slot: np.ndarray, player: np.ndarray, cell_x: np.ndarray, cell_y: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        cell = np.clip(cell_x - 1, 0, 15) * 25 + np.clip(cell_y - 1, 0, 24)
        where = (slot * self.count + player) * 400 + cell
        spent = np.bincount(where, weight, self.slots * self.count * 400).reshape(self.slots, -1)
        run = np.concatenate([np.zeros((1, spent.shape[1])), np.cumsum(spent, axis=0)])
        maps = (run[self.per_map :] - run[: -self.per_map]).reshape(-1, self.count, 400)
        return maps / np.maximum(maps.sum(axis=2, keepdims=True), 1e-9)

    def of_events(self) -> np.ndarray:
        cells = np.ceil(self.x / 4.25).astype(np.int64), np.ceil(self.y / 4.2).astype(np.int64)
        return self._maps(self.ts // self.slide, self.player, *cells, np.ones(self.ts.size))

    def of_frames(self) -> np.ndarray:
        """Frames are cut where a slide ends; each part weighs what it lasts."""
        frames = fr.detect(self.grid, self.table, key="player")
        start, end = np.asarray(frames["start"]), np.asarray(frames["end"]) + 20  # an event every 20 ms
        first, last = start // self.slide, (end - 1) // self.slide
        parts = last - first + 1
        which = np.repeat(np.arange(start.size), parts)
        slot = first[which] + np.arange(which.size) - np.repeat(np.cumsum(parts) - parts, parts)
        lasts = np.minimum(end[which], (slot + 1) * self.slide) - np.maximum(start[which], slot * self.slide)
        player, x, y = (np.asarray(frames[c])[which] for c in ("player", "cell_x", "cell_y"))
        return self._maps(np.minimum(slot, self.slots - 1), player, x, y, lasts)

    def of_windows(self, width: int) -> np.ndarray:
        """The mean position of each player in each window of `width` ms, for all of the window."""
        window = (self.ts // width) * self.count + self.player
        n = np.bincount(window)
        some = np.flatnonzero(n)
        x, y = (np.bincount(window, v)[some] / n[some] for v in (self.x, self.y))
        slot = (some // self.count) * width // self.slide
        return self._maps(
            slot,
            some % self.count,
            np.ceil(x / 4.25).astype(np.int64),
            np.ceil(y / 4.2).astype(np.int64),
            n[some].astype(float),
        )


def picture(report: Report, args: argparse.Namespace) -> None:
    """A few days of traffic, the slow episodes shaded: what fr.plot draws."""
    table = next(iter(frames_data.traffic(args.traffic, True).values()))
    frames = fr.detect(fr.Threshold("speed", "<", 40, min_duration=180), table)
    fr.plot(frames, table, y="speed")
    report.notes.append(f"plotted: {_save(args, 'plot')}")


def _save(args: argparse.Namespace, name: str) -> Path:
    path = Path(args.figures) / f"frames_{name.replace(' ', '_').replace('/', '_')}.png"
    plt.savefig(path, dpi=90)
    plt.close()
    return path


STUDIES: dict[str, Callable[[Report, argparse.Namespace], None]] = {
    "episodes": episodes, "fragments": fragments, "scatter": scatter, "histogram": histogram,
    "heatmap": heatmap, "picture": picture,
}  # fmt: skip


def run(args: argparse.Namespace) -> dict[str, Any]:
    report = Report("frames: what windows and samples lose")
    for name in args.studies or STUDIES:
        STUDIES[name](report, args)
    print(plain(report))
    return report.as_json()


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.frames_studies", description=__doc__)
    parser.add_argument("studies", nargs="*", choices=[*STUDIES, []])
    parser.add_argument("--quick", action="store_true")
    for name in ("traffic", "casts", "trades"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--figures", type=Path, default=Path("docs"))
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    run(arguments(argv))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
