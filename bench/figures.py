"""Figures 9, 10 and 11 of Arasu & Widom (2004), measured with our structures."""

from collections.abc import Iterator
from pathlib import Path

from bench import bare, mix, plots
from bench.micro import rate_of_lookups, rate_of_updates
from bench.report import Finding, Report, Table

HERE = Path(__file__).parent
NMAX = 100_000
LEVEL = 1.0 / 3  # "level over all ratios": no mix is slower than this share of the even one; naive ones fall to 1/100


def run(quick: bool) -> Iterator[Report]:
    folder = HERE / "results" / "figures" if quick else HERE.parent / "docs" / "figures"
    for figure in (figure_9, figure_10, figure_11):
        yield figure(folder, quick)


def figure_9(folder: Path, quick: bool) -> Report:
    shares = [0, 50, 100] if quick else [0, 1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 100]
    made = mix.structures()
    _check_agreement(made)
    rounds, shortest = (1, 0.002) if quick else (5, mix.SHORTEST)
    series: dict[str, list[float]] = {structure.name: [] for structure in made}
    for share in shares:
        for structure in made:
            series[structure.name].append(mix.rate(structure, share, rounds, shortest) / 1e6)
    labels = "updates among all operations (%)", "operations per second (millions)"
    path = plots.lines(
        folder / "figure-9.png",
        "1,000 SUM windows of 1 - 1,000 rows, updates and lookups mixed",
        *labels,
        shares,
        series,
        False,
    )
    report = Report("figure 9: R-INT and B-INT against the alternatives")
    report.findings = list(_judged(shares, series))
    report.tables.append(
        _table("millions of operations per second of CPU time, by share of updates", "updates %", shares, series, path)
    )
    report.notes.append(
        f'"Level" is judged as no mix being slower than {LEVEL:.2f} of the one of as many updates as lookups. A line '
        "may tilt: an update of B-INT is cheaper than a lookup, so it gets faster with updates, as in the paper."
    )
    report.notes.append(
        "The paper's windows are N = 0 - 999; a window of no rows has no sum, so these are 1 - 1,000. One operation "
        "at a time, one compiled loop per structure; lookups picked uniformly; all give the same answers. "
        "Integers."
    )
    report.notes.append(
        "R-INT, B-INT, PSoup and materialize none run by the kernels made for batches, called with one row or window. "
        "For "
        "R-INT that call costs far more than its work: its other line is the loop body alone. So where B-INT lies "
        "above "
        "R-INT, calls are compared, not structures; no such line was made for B-INT or PSoup. Verdicts: the slower "
        "line."
    )
    return report


def _judged(shares: list[int], series: dict[str, list[float]]) -> Iterator[Finding]:
    for name in ("R-INT", "B-INT"):
        rates = series[name]
        even = rates[shares.index(50)]
        yield Finding(f"{name} stays level", "slowest mix / as many updates as lookups", min(rates) / even, "x", LEVEL)
        yield Finding(f"{name}, which way it tilts", "updates alone / lookups alone", rates[-1] / rates[0], "x")
        for other in ("PSoup", "materialize all", "materialize none"):
            inner = [i for i, share in enumerate(shares) if 10 <= share <= 90]
            least = min(series[name][i] / series[other][i] for i in inner)
            yield Finding(
                f"{name} beats {other} away from the corners", "least ratio at 10 - 90 % updates", least, "x", 1
            )


def _check_agreement(made: list[bare.Bare]) -> None:
    ops = mix.operations(3000, 50)
    for structure in made:
        mix.fill(structure)
    answers = {structure.name: mix.perform(structure, ops) for structure in made}
    if len(set(answers.values())) != 1:
        raise AssertionError(f"the structures of figure 9 disagree: {answers}")


def figure_10(folder: Path, quick: bool) -> Report:
    sizes = [100, 10_000] if quick else [100, 1_000, 10_000, 100_000, 1_000_000]
    count, rounds = (1 << 16, 2) if quick else (1 << 22, 7)
    makers = {
        "R-INT": bare.running_integers,
        "R-INT (floats)": bare.running_floats,
        "B-INT": bare.base,
        "B-INT-QNT": bare.sorted_base,
    }
    series = {
        name: [rate_of_updates(make(n), count // (16 if name == "B-INT-QNT" else 1), rounds, batch=1000) for n in sizes]
        for name, make in makers.items()
    }
    labels = "Nmax: rows kept", "updates per second (millions)"
    path = plots.lines(
        folder / "figure-10.png", "Updates: R-INT (SUM), B-INT (MAX), B-INT-QNT", *labels, sizes, series, True
    )
    report = Report("figure 10: update rates")
    report.tables.append(
        _table(
            "millions of updates per second of CPU time, by Nmax, in batches of up to 1,000",
            "Nmax",
            sizes,
            series,
            path,
        )
    )
    return report


def figure_11(folder: Path, quick: bool) -> Report:
    widths = [10, 10_000] if quick else [10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 90_000]
    count, rounds = (2_000, 2) if quick else (200_000, 7)
    makers = {
        "R-INT": bare.running_integers,
        "R-INT (floats)": bare.running_floats,
        "B-INT": bare.base,
        "B-INT-QNT": bare.sorted_base,
    }
    made = {name: make(NMAX) for name, make in makers.items()}
    for structure in made.values():
        structure.append(2 * NMAX)
    series = {
        name: [rate_of_lookups(structure, count // (50 if structure.ranked else 1), rounds, w, w) for w in widths]
        for name, structure in made.items()
    }
    series["L-INT"] = [_landmark_rate(w, count, rounds) for w in widths]
    labels = "W: rows in the window", "lookups per second (millions)"
    path = plots.lines(
        folder / "figure-11.png", f"Lookups of windows placed anywhere, Nmax = {NMAX:,}", *labels, widths, series, True
    )
    report = Report("figure 11: lookup rates")
    report.tables.append(
        _table("millions of lookups per second of CPU time, by W, in one batch", "W", widths, series, path)
    )
    report.notes.append(
        "W ends below Nmax: a window as wide as what is kept has one place only, and is looked up at twice the rate."
    )
    report.notes.append("L-INT (not in the paper's figure) is the one group that W belongs to.")
    return report


def _landmark_rate(width: int, count: int, rounds: int) -> float:
    structure = bare.landmarks(NMAX, width)
    structure.append(2 * NMAX)
    return rate_of_lookups(structure, count, rounds, width, width)


def _table(title: str, first: str, x: list[int], series: dict[str, list[float]], path: Path) -> Table:
    return Table(title, [first, *series], [[each, *(y[i] for y in series.values())] for i, each in enumerate(x)], path)
