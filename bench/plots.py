"""Plots for the docs: one axis, one line per structure, named where it ends."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

COLORS = {
    "R-INT": "#1f5fa8", "R-INT (floats)": "#6fa8dc", "R-INT (loop body)": "#6fa8dc", "B-INT": "#c8501e",
    "L-INT": "#2e8b57", "B-INT-QNT": "#7b3fa0",
    "PSoup": "#777777", "materialize all": "#a8861b", "materialize none": "#333333",
}  # fmt: skip


def lines(
    path: Path, title: str, x_label: str, y_label: str, x: list[float], series: dict[str, list[float]], log_x: bool
) -> Path:
    figure, axes = plt.subplots(figsize=(8, 4.8), dpi=100)
    for name, y in series.items():
        dashed = "--" if name.startswith("materialize") or name == "PSoup" else "-"
        axes.plot(x, y, dashed, marker="o", markersize=4, linewidth=1.8, color=COLORS.get(name), label=name)
    axes.set(xlabel=x_label, ylabel=y_label, yscale="log", xscale="log" if log_x else "linear")
    axes.set_title(title, loc="left", fontsize=11)
    axes.grid(True, which="major", color="#e4e4e4", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, bbox_inches="tight")
    plt.close(figure)
    return path
